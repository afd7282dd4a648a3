"""Random changes of structure that the lake can follow (docs/semantics.md)."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.soak.schema.facts import OURS, Column, Database, Statement, Table, identifier
from tests.soak.schema.values import digits, length, new_value

_TYPES: Final = {
    "smallint": "int2",
    "integer": "int4",
    "bigint": "int8",
    "numeric(8,2)": "numeric",
    "numeric": "numeric",
    "real": "float4",
    "double precision": "float8",
    "text": "text",
    "varchar(20)": "varchar",
    "boolean": "bool",
    "date": "date",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "time": "time",
    "interval": "interval",
    "uuid": "uuid",
    "bytea": "bytea",
    "jsonb": "jsonb",
    "inet": "inet",
    "text[]": "_text",
    "integer[]": "_int4",
}
_NO_DEFAULT: Final = frozenset({"real", "double precision"})
"""Types without a default: their random values, such as NaN, would fill the whole column."""
_FIRST_YEAR: Final = 2500
_FIRST_NUMBER: Final = 2_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change; if ``alone``, the connector must first have read all of the table (0011)."""

    table: Table
    statement: Statement
    alone: bool = False

    @property
    def lock(self) -> Statement:
        """The statement that must come first: it locks the table, or a partition's parent."""
        table = self.table.parent or self.table.quoted
        return Statement(kind="lock", sql=f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")


Chooser = Callable[[Database, Table, random.Random, int], Statement | None]


def structure_change(database: Database, rng: random.Random, number: int) -> Change:
    """Return a change that makes sense for the tables; ``number`` makes its names unique."""
    while True:
        kind = rng.choices(list(_CHOOSERS), list(_CHOOSERS.values()))[0]
        tables = [table for table in database.tables if bool(table.parent) == (kind is reattach)]
        if not tables:
            continue
        table = rng.choice(tables)
        statement = kind(database, table, rng, number)
        if statement is not None:
            return Change(table=table, statement=statement, alone=kind is widen)


def add(database: Database, table: Table, rng: random.Random, number: int) -> Statement:
    """Add a column without values, of any type including the database's own."""
    own = dict(database.own_types)
    type_ = rng.choice([*_TYPES, *own])
    return _alter("add column", table, f"ADD COLUMN {_new(number)} {type_}")


def add_default(
    database: Database, table: Table, rng: random.Random, number: int
) -> Statement | None:
    """Add a column with a default, so that every row has a value at once."""
    enums = {name: labels for name, labels in database.own_types if labels}
    type_ = rng.choice([*(name for name in _TYPES if name not in _NO_DEFAULT), *enums])
    base = _TYPES.get(type_, "")
    column = Column(
        name="",
        type=type_,
        base=base.removeprefix("_") or "enum",
        element=base[1:] if base.startswith("_") else "",
        modifier=(8 << 16 | 2) + 4 if type_ == "numeric(8,2)" else 24 if "varchar" in type_ else -1,
        labels=enums.get(type_, ()),
    )
    # An array with elements as default stops the table, as documented.
    value = f"'{{}}'::{type_}" if column.element else new_value(column, rng)
    if value is None or "SELECT" in value:
        return None
    required = rng.choice(["", " NOT NULL"])
    return _alter(
        "add column with default",
        table,
        f"ADD COLUMN {_new(number)} {type_}{required} DEFAULT {value}",
    )


def drop(_: Database, table: Table, rng: random.Random, number: int) -> Statement | None:
    """Drop a column that the walk added."""
    del number
    column = _one_of_ours(table, rng)
    return _alter("drop column", table, f"DROP COLUMN {column.quoted}") if column else None


def rename(_: Database, table: Table, rng: random.Random, number: int) -> Statement | None:
    """Rename a column that the walk added."""
    column = _one_of_ours(table, rng)
    action = f"RENAME COLUMN {column.quoted} TO {_new(number)}" if column else ""
    return _alter("rename column", table, action) if column else None


def widen(_: Database, table: Table, rng: random.Random, number: int) -> Statement | None:
    """Change a column's type to one that holds every value unchanged."""
    del number
    free = [column for column in table.given if column.name not in table.key]
    ours = [column for column in free if column.ours]
    # The database's own columns are used by views, so that most changes are refused.
    candidates = [(column, wider(column)) for column in (ours if rng.random() < 0.5 else free)]
    possible = [(column, types) for column, types in candidates if types]
    if not possible:
        return None
    column, types = rng.choice(possible)
    return _alter("widen column", table, f"ALTER COLUMN {column.quoted} TYPE {rng.choice(types)}")


def wider(column: Column) -> tuple[str, ...]:
    """Return the wider types that the lake follows according to ``docs/semantics.md``."""
    if column.domain or column.element:
        return ()
    if column.base == "numeric":
        return _wider_numeric(column)
    if column.base == "varchar":
        longest = length(column)
        return ("text", f"varchar({longest + 10})") if longest else ("text",)
    return {
        "int2": ("integer", "bigint"),
        "int4": ("bigint",),
        "float4": ("double precision",),
        "date": ("timestamp",),
    }.get(column.base, ())


def _wider_numeric(column: Column) -> tuple[str, ...]:
    precision_and_scale = digits(column)
    if precision_and_scale is None or precision_and_scale[0] > 30:
        return ()
    precision, scale = precision_and_scale
    return f"numeric({precision + 2},{scale})", f"numeric({precision + 3},{scale + 1})"


def not_null(_: Database, table: Table, rng: random.Random, number: int) -> Statement | None:
    """Set or drop NOT NULL of a column."""
    del number
    free = [column for column in table.given if column.name not in table.key]
    if not free:
        return None
    column = rng.choice(free)
    # The database's own NOT NULLs are never dropped, or everything would become NULL in time.
    verb = "DROP" if column.not_null and column.ours else "SET"
    return _alter(
        f"{verb.lower()} not null", table, f"ALTER COLUMN {column.quoted} {verb} NOT NULL"
    )


def index(_: Database, table: Table, rng: random.Random, number: int) -> Statement | None:
    """Create an index or drop one of the walk's."""
    if table.indexes and rng.random() < 0.5:
        return Statement(kind="drop index", sql=f"DROP INDEX {rng.choice(table.indexes)}")
    column = rng.choice(table.columns)
    return Statement(
        kind="create index", sql=f"CREATE INDEX {_new(number)} ON {table.quoted} ({column.quoted})"
    )


def partition(_: Database, table: Table, rng: random.Random, number: int) -> Statement | None:
    """Create a partition of a range without rows: it is not captured before the next start."""
    bounds = _bounds(table.range_of, number)
    if bounds is None:
        return None
    name = f"{identifier(table.schema)}.{_new(number)}"
    if rng.random() < 0.5:
        create = f"CREATE TABLE {name} PARTITION OF {table.quoted} {bounds}"
        return Statement(kind="create partition", sql=create)
    create = f"CREATE TABLE {name} (LIKE {table.quoted} INCLUDING DEFAULTS);"
    attach = f"ALTER TABLE {table.quoted} ATTACH PARTITION {name} {bounds}"
    return Statement(kind="attach partition", sql=create + attach)


def reattach(_: Database, table: Table, rng: random.Random, number: int) -> Statement:
    """Detach a captured partition and attach it again."""
    del rng, number
    return Statement(
        kind="detach and attach partition",
        sql=f"ALTER TABLE {table.parent} DETACH PARTITION {table.quoted};"
        f"ALTER TABLE {table.parent} ATTACH PARTITION {table.quoted} {table.bound}",
    )


def _bounds(type_: str, number: int) -> str | None:
    if type_ in {"date", "timestamp", "timestamptz"}:
        year = _FIRST_YEAR + number
        return f"FOR VALUES FROM ('{year}-01-01') TO ('{year + 1}-01-01')"
    if type_ in {"int4", "int8", "numeric"}:
        return f"FOR VALUES FROM ({_FIRST_NUMBER + number}) TO ({_FIRST_NUMBER + number + 1})"
    return None


def _alter(kind: str, table: Table, action: str) -> Statement:
    return Statement(kind=kind, sql=f"ALTER TABLE {table.quoted} {action}")


def _one_of_ours(table: Table, rng: random.Random) -> Column | None:
    ours = [column for column in table.columns if column.ours]
    return rng.choice(ours) if ours else None


def _new(number: int) -> str:
    return identifier(f"{OURS}{number}")


_CHOOSERS: Final[dict[Chooser, int]] = {
    add: 20,
    add_default: 20,
    drop: 16,
    rename: 12,
    widen: 18,
    not_null: 12,
    index: 8,
    partition: 8,
    reattach: 5,
}
