"""Makes the statements that create a random database: a pure function of a seed.

Postgres decides whether a statement is legal; each one it refuses is one table or row less.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.schemas import kinds, names
from tests.schemas.kinds import Kind
from tests.soak.schema.facts import identifier, literal

TABLES: Final = 22
"""Besides children and partitions, which make some thirty of them."""
EXTENSIONS: Final = ("hstore", "citext", "ltree", "cube", "seg", "isn")
_WIDTHS: Final = (100, 300, 800, 1600)
_MOST_ROWS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column; ``more`` follows its type, ``given`` says whether rows give it a value."""

    name: str
    kind: Kind
    more: str = ""
    nullable: bool = True
    given: bool = True

    @property
    def declared(self) -> str:
        """Return the column's definition in CREATE TABLE."""
        return f"{identifier(self.name)} {self.kind.declared} {self.more}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; a row gives a value to at most ``filled`` of its columns."""

    quoted: str
    columns: tuple[Column, ...]
    key: tuple[Column, ...] = ()
    filled: int = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Makes the random choices of one database."""

    rng: random.Random
    schemas: tuple[str, ...]
    own: tuple[Kind, ...] = ()
    taken: set[str] = field(default_factory=set)
    """Names of tables and types, because a table creates a type of its name."""
    tables: list[tuple[str, str]] = field(default_factory=list)

    def chance(self, share: float) -> bool:
        """Return True with this probability."""
        return self.rng.random() < share

    def table_name(self) -> str:
        """Draw a new quoted name; some differ from an existing one only in case."""
        while True:
            schema, name = self.rng.choice(self.schemas), names.of_table(self.rng)
            if self.tables and self.chance(0.05):
                schema, name = self.rng.choice(self.tables)
                name = names.cut(name.swapcase())
            if (quoted := f"{identifier(schema)}.{identifier(name)}") not in self.taken:
                self.taken.add(quoted)
                self.tables.append((schema, name))
                return quoted


def database(seed: int) -> list[str]:
    """Return the statements, to be run one by one in this order."""
    rng = random.Random(f"schemas {seed}")
    schemas = _schemas(rng)
    made = [f"CREATE EXTENSION {name}" for name in EXTENSIONS]
    made += [f"CREATE SCHEMA {identifier(name)}" for name in schemas if name != "public"]
    types = list(_own_types(Draw(rng=rng, schemas=schemas)))
    made += [statement for statement, _ in types]
    own = tuple(kind for _, found in types for kind in found)
    draw = Draw(rng=rng, schemas=schemas, own=own, taken={kind.declared for kind in own})
    made += _wide(draw)
    for _ in range(TABLES - 1):
        make = rng.choices(list(SHAPES.values()), [_WEIGHTS.get(name, 2) for name in SHAPES])[0]
        made += make(draw)
    return made


def _schemas(rng: random.Random) -> tuple[str, ...]:
    """Return names of schemas, of which two sometimes differ only in case."""
    found = ["public", *(names.of_table(rng) for _ in range(3))]
    if rng.random() < 0.3:
        found.append(names.cut(rng.choice(found).swapcase()))
    return tuple(dict.fromkeys(found))


def _own_types(draw: Draw) -> Iterator[tuple[str, tuple[Kind, ...]]]:
    """Return statements, each with the kinds that it creates."""
    for _ in range(2):
        yield _enum(draw)
    yield _composite(draw)
    yield _range_type(draw)
    above: list[Kind] = []
    for _ in range(6):
        statement, found = _domain(draw, above)
        above += found
        yield statement, found


def _enum(draw: Draw) -> tuple[str, tuple[Kind, ...]]:
    name = _type_name(draw)
    labels = draw.rng.sample(["sad", 'so "so"', "", "é", "${x}", "a,b", "it's", "\\"], 4)
    listed = ", ".join(map(literal, labels))
    kind = Kind(base="(enum)", declared=name, make=lambda rng: rng.choice(labels))
    return f"CREATE TYPE {name} AS ENUM ({listed})", (kind,)


def _composite(draw: Draw) -> tuple[str, tuple[Kind, ...]]:
    name = _type_name(draw)
    kind = Kind(
        base="(composite)", declared=name, make=lambda rng: f'({rng.randint(0, 9)},"a ""b"" é")'
    )
    return f"CREATE TYPE {name} AS (n int, {identifier(names.of_type(draw.rng))} text)", (kind,)


def _range_type(draw: Draw) -> tuple[str, tuple[Kind, ...]]:
    name, several = _type_name(draw), _type_name(draw)
    statement = f"CREATE TYPE {name} AS RANGE (subtype = float8, multirange_type_name = {several})"
    one = Kind(base="(range)", declared=name, make=lambda rng: f"[{rng.randint(0, 4)},5.5)")
    many = Kind(base="(multirange)", declared=several, make=lambda _: "{[1,2),[3,4)}")
    return statement, (one, many)


def _domain(draw: Draw, above: list[Kind]) -> tuple[str, tuple[Kind, ...]]:
    """Return a domain, sometimes over another domain or an array."""
    over = draw.rng.choice(above) if above and draw.chance(0.3) else draw.rng.choice(kinds.KINDS)
    over = kinds.array_of(over) if draw.chance(0.1) else over
    name = _type_name(draw)
    check = " CHECK (VALUE IS NOT NULL OR VALUE IS NULL)" if draw.chance(0.3) else ""
    kind = Kind(base="(domain)", declared=name, make=over.make)
    return f"CREATE DOMAIN {name} AS {over.declared}{check}", (kind,)


def _type_name(draw: Draw) -> str:
    while True:
        schema = identifier(draw.rng.choice(draw.schemas))
        quoted = f"{schema}.{identifier(names.of_type(draw.rng))}"
        if quoted not in draw.taken:
            draw.taken.add(quoted)
            return quoted


def _columns(draw: Draw, number: int, *, key: int = 0) -> list[Column]:
    """Return columns, of which the first ``key`` are the key."""
    found = names.of_columns(draw.rng, number)
    keyed = [_key_column(draw, name) for name in found[:key]]
    return keyed + [_column(draw, name) for name in found[key:]]


def _key_column(draw: Draw, name: str) -> Column:
    return Column(name=name, kind=kinds.key_kind(draw.rng, draw.own), nullable=False)


def _column(draw: Draw, name: str) -> Column:
    kind = kinds.any_kind(draw.rng, draw.own)
    default = kind.make(draw.rng) if draw.chance(0.15) else None
    if default is not None:
        null = draw.chance(0.5)
        more = f"DEFAULT {literal(default)}" + ("" if null else " NOT NULL")
        return Column(name=name, kind=kind, more=more, nullable=null)
    if kind.base == "int8" and not kind.array and draw.chance(0.3):
        how = draw.rng.choice(["ALWAYS", "BY DEFAULT"])
        more = f"GENERATED {how} AS IDENTITY"
        return Column(name=name, kind=kind, more=more, given=how != "ALWAYS", nullable=False)
    if kind.base == "int4" and not kind.array and draw.chance(0.3):
        more = "GENERATED ALWAYS AS (1 + 1) STORED"
        return Column(name=name, kind=kind, more=more, given=False)
    return Column(name=name, kind=kind)


def _width(draw: Draw) -> int:
    return draw.rng.choice([1, 2, 3, 5, 8, 8, 12, 30])


def _create(table: Table, *, more: str = "", after: str = "", how: str = "") -> str:
    listed = ", ".join([*(column.declared for column in table.columns), *([more] if more else [])])
    return f"CREATE {how}TABLE {table.quoted} ({listed}){after}"


def _key(table: Table) -> str:
    return ", ".join(identifier(column.name) for column in table.key)


def _rows(draw: Draw, table: Table, into: str = "") -> Iterator[str]:
    for _ in range(draw.rng.randint(0, _MOST_ROWS)):
        yield _row(draw, table, into or table.quoted)


def _row(draw: Draw, table: Table, into: str) -> str:
    free = [column for column in table.columns if column.given and column not in table.key]
    chosen = free if len(free) <= table.filled else draw.rng.sample(free, table.filled)
    given = [*table.key, *(c for c in chosen if not (c.nullable and draw.chance(0.2)))]
    if not given:
        return f"INSERT INTO {into} DEFAULT VALUES"
    listed = ", ".join(identifier(column.name) for column in given)
    values = ", ".join(_value(draw, column) for column in given)
    return f"INSERT INTO {into} ({listed}) OVERRIDING SYSTEM VALUE VALUES ({values})"


def _value(draw: Draw, column: Column) -> str:
    text = column.kind.make(draw.rng)
    return "NULL" if text is None else literal(text)


def _with_key(draw: Draw, keyed: int, width: int) -> Table:
    columns = _columns(draw, max(width, keyed), key=keyed)
    return Table(quoted=draw.table_name(), columns=tuple(columns), key=tuple(columns[:keyed]))


def _single(draw: Draw, after: str = "", how: str = "", options: str = "") -> Iterator[str]:
    table = _with_key(draw, 1, _width(draw))
    yield _create(table, more=f"PRIMARY KEY ({_key(table)}){options}", after=after, how=how)
    yield from _rows(draw, table)


def _composite_key(draw: Draw) -> Iterator[str]:
    table = _with_key(draw, draw.rng.randint(2, 5), _width(draw))
    yield _create(table, more=f"PRIMARY KEY ({_key(table)})")
    if draw.chance(0.3):
        yield f"ALTER TABLE {table.quoted} REPLICA IDENTITY FULL"
    yield from _rows(draw, table)


def _without_key(draw: Draw) -> Iterator[str]:
    table = _with_key(draw, 0, _width(draw))
    yield _create(table)
    identity = draw.rng.choices(["FULL", "DEFAULT", "NOTHING"], [8, 1, 1])[0]
    yield f"ALTER TABLE {table.quoted} REPLICA IDENTITY {identity}"
    rows = list(_rows(draw, table))
    yield from rows + rows[:2]


def _by_index(draw: Draw) -> Iterator[str]:
    """Return a table identified by an index; sometimes it also has another primary key."""
    table = _with_key(draw, draw.rng.randint(1, 2), _width(draw))
    listed, name = _key(table), identifier(names.cut(f"ix {len(draw.taken)} é"))
    number, rest = identifier("number of its own"), ", ".join(c.declared for c in table.columns)
    if draw.chance(0.3):
        yield f"CREATE TABLE {table.quoted} ({rest}, {number} serial PRIMARY KEY)"
    else:
        yield _create(table)
    for column in table.key:
        yield f"ALTER TABLE {table.quoted} ALTER {identifier(column.name)} SET NOT NULL"
    yield f"CREATE UNIQUE INDEX {name} ON {table.quoted} ({listed})"
    yield f"ALTER TABLE {table.quoted} REPLICA IDENTITY USING INDEX {name}"
    yield from _rows(draw, table)


def _deferrable(draw: Draw) -> Iterator[str]:
    yield from _single(draw, options=" DEFERRABLE INITIALLY DEFERRED")


def _unlogged(draw: Draw) -> Iterator[str]:
    yield from _single(draw, how="UNLOGGED ")


def _nothing_at_all(draw: Draw) -> Iterator[str]:
    """Return a table without columns, which Postgres allows."""
    table = Table(quoted=draw.table_name(), columns=())
    yield _create(table)
    yield f"ALTER TABLE {table.quoted} REPLICA IDENTITY FULL"
    yield from _rows(draw, table)


def _inherited(draw: Draw) -> Iterator[str]:
    """Return a parent, children with columns of their own, and sometimes a grandchild."""
    parent = _with_key(draw, 1, 4)
    yield _create(parent, more=f"PRIMARY KEY ({_key(parent)})")
    yield from _rows(draw, parent)
    above = parent.quoted
    for number in range(draw.rng.randint(1, 2)):
        child = Table(quoted=draw.table_name(), columns=parent.columns, key=parent.key)
        own = f"own{number} int" + (f", PRIMARY KEY ({_key(parent)})" if draw.chance(0.8) else "")
        yield f"CREATE TABLE {child.quoted} ({own}) INHERITS ({above})"
        yield from _rows(draw, child)
        above = child.quoted if draw.chance(0.5) else above


def _partitioned(draw: Draw) -> Iterator[str]:
    """Return a table partitioned by ranges, lists or hashes; some partitions have partitions."""
    number = Column(name=names.cut(f"nr{names.of_type(draw.rng)}"), kind=kinds.PLAIN_KEY,
                    nullable=False)  # fmt: skip
    rest = _columns(draw, 4)
    columns = (number, *(c for c in rest if "IDENTITY" not in c.more and c.name != number.name))
    root = Table(quoted=draw.table_name(), columns=columns, key=(number,))
    how = draw.rng.choice(list(_BOUNDS))
    by = f" PARTITION BY {how} ({identifier(number.name)})"
    yield _create(root, more=f"PRIMARY KEY ({identifier(number.name)})", after=by)
    for bound in _BOUNDS[how]:
        part = draw.table_name()
        below = f" PARTITION BY HASH ({identifier(number.name)})" if draw.chance(0.3) else ""
        yield f"CREATE TABLE {part} PARTITION OF {root.quoted} {bound}{below}"
        for rest_of in (0, 1) if below else ():
            yield (
                f"CREATE TABLE {draw.table_name()} PARTITION OF {part}"
                f" FOR VALUES WITH (MODULUS 2, REMAINDER {rest_of})"
            )
    yield from _rows(draw, root)
    yield from _rows(draw, root)


def _wide(draw: Draw) -> Iterator[str]:
    """Return a wide table, one per database; its rows fill few columns, or they exceed a page."""
    table = _with_key(draw, 1, draw.rng.choice(_WIDTHS))
    wide = Table(quoted=table.quoted, columns=table.columns, key=table.key)
    yield _create(wide, more=f"PRIMARY KEY ({_key(wide)})")
    yield from _rows(draw, wide)


_BOUNDS: Final = {
    "RANGE": ("FOR VALUES FROM (MINVALUE) TO (0)", "FOR VALUES FROM (0) TO (9)", "DEFAULT"),
    "LIST": ("FOR VALUES IN (0, 1)", "DEFAULT"),
    "HASH": tuple(f"FOR VALUES WITH (MODULUS 2, REMAINDER {rest})" for rest in (0, 1)),
}
SHAPES: Final[dict[str, Callable[[Draw], Iterator[str]]]] = {
    "single key": _single,
    "composite key": _composite_key,
    "no key": _without_key,
    "identity index": _by_index,
    "deferrable key": _deferrable,
    "unlogged": _unlogged,
    "inherited": _inherited,
    "partitioned": _partitioned,
    "no columns": _nothing_at_all,
}
_WEIGHTS: Final = {"single key": 8, "composite key": 5, "no key": 4, "identity index": 3,
                   "deferrable key": 1, "unlogged": 1, "no columns": 1}  # fmt: skip
