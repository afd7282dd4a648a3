"""Random changes of rows, from a table's facts alone; Postgres decides whether they are legal."""

import random
from collections.abc import Callable, Iterator
from typing import Final

from tests.soak.schema.facts import Column, Database, Reference, Statement, Table, identifier
from tests.soak.schema.values import changed_value, fresh_value, new_value

_MOST_ROWS: Final = 4
_MOST_TRUNCATED: Final = 5_000
"""The largest table to truncate: more rows inserted again would crowd out all other changes."""


def row_change(table: Table, rng: random.Random) -> Statement:
    """Return one random statement about some rows of the table."""
    given = bool(table.given)  # a table may have no column that can be given a value
    kinds: dict[Callable[[Table, random.Random], Statement], int] = {
        copy: 30 * given,
        insert: 10 if table.rows else 60,
        update: 45 * given,
        delete: 10,
        reinsert: 4 * given,
        change_key: 7 if table.key else 0,
        truncate: given and not table.referenced and table.rows <= _MOST_TRUNCATED,
    }
    return rng.choices(list(kinds), list(kinds.values()))[0](table, rng)


def pick(database: Database, rng: random.Random) -> Table:
    """Choose a table, small ones as often as large ones."""
    return rng.choice(database.tables)


def copy(table: Table, rng: random.Random) -> Statement:
    """Copy existing rows under new keys."""
    values = dict(_copied(table, rng))
    names = ", ".join(column.quoted for column in values)
    some = f"(SELECT * FROM {table.quoted} {_some(table.rows, rng)}) o"
    copied = f"SELECT {', '.join(values.values())} FROM {some}"
    return Statement(kind="insert", sql=f"INSERT INTO {table.quoted} ({names}) {copied}")


def insert(table: Table, rng: random.Random) -> Statement:
    """Insert one row of new values."""
    values = dict(_inserted(table, rng))
    if not values:
        return Statement(kind="insert", sql=f"INSERT INTO {table.quoted} DEFAULT VALUES")
    names = ", ".join(column.quoted for column in values)
    listed = ", ".join(values.values())
    return Statement(kind="insert", sql=f"INSERT INTO {table.quoted} ({names}) SELECT {listed}")


def update(table: Table, rng: random.Random) -> Statement:
    """Update some columns outside the key."""
    free = [column for column in table.given if column.name not in table.key]
    if not free:
        return change_key(table, rng)
    chosen = rng.sample(free, min(len(free), rng.randint(1, 3)))
    values = {column: _updated(table, column, rng) for column in chosen}
    return Statement(kind="update", sql=_update(table, values, rng))


def change_key(table: Table, rng: random.Random) -> Statement:
    """Update a column of the key in one row, since an UPDATE cannot number its rows."""
    column = rng.choice([column for column in table.columns if column.name in table.key])
    value = _fresh(table, column, rng) or column.quoted
    return Statement(kind="update of a key", sql=_update(table, {column: value}, rng, most=1))


def delete(table: Table, rng: random.Random) -> Statement:
    """Delete some rows."""
    return Statement(kind="delete", sql=f"DELETE FROM {table.quoted} WHERE {_rows(table, rng)}")


def reinsert(table: Table, rng: random.Random) -> Statement:
    """Delete rows and insert them again under their keys."""
    names = ", ".join(column.quoted for column in table.given)
    gone = f"DELETE FROM {table.quoted} WHERE {_rows(table, rng)} RETURNING *"
    back = f"INSERT INTO {table.quoted} ({names}) OVERRIDING SYSTEM VALUE SELECT {names} FROM gone"
    return Statement(kind="delete and insert", sql=f"WITH gone AS ({gone}) {back}")


def truncate(table: Table, rng: random.Random) -> Statement:
    """Truncate the table and insert most rows again, or little would soon be left to change."""
    names = ", ".join(column.quoted for column in table.given)
    lost = rng.randint(0, 20)
    return Statement(
        kind="truncate",
        sql=f"CREATE TEMP TABLE soak_kept ON COMMIT DROP AS SELECT {names} FROM {table.quoted};"
        f"TRUNCATE {table.quoted}; INSERT INTO {table.quoted} ({names}) OVERRIDING SYSTEM VALUE"
        f" SELECT {names} FROM soak_kept OFFSET {lost}; DROP TABLE soak_kept",
    )


def _copied(table: Table, rng: random.Random) -> Iterator[tuple[Column, str]]:
    for column in table.given:
        if column.name in table.unique:
            if not column.sequence:
                fresh = _fresh(table, column, rng, place="row_number() OVER ()")
                yield column, fresh or column.quoted
            continue
        chance = rng.random()
        if chance < 0.6:
            yield column, column.quoted
        elif chance < 0.7 and not column.not_null:
            yield column, _null(column)
        else:
            yield column, _another(column, rng) or column.quoted


def _inserted(table: Table, rng: random.Random) -> Iterator[tuple[Column, str]]:
    for column in table.given:
        if column.sequence or (column.default and rng.random() < 0.5):
            continue
        unique = column.name in table.unique
        value = _fresh(table, column, rng) if unique else _another(column, rng)
        if value is not None:
            yield column, value


def _fresh(table: Table, column: Column, rng: random.Random, *, place: str = "1") -> str | None:
    if column.references is not None:
        return _referenced(column.references, rng)
    return fresh_value(table, column, rng, place=place)


def _another(column: Column, rng: random.Random) -> str | None:
    if column.references is not None:
        return _referenced(column.references, rng)
    return new_value(column, rng)


def _updated(table: Table, column: Column, rng: random.Random) -> str:
    if column.name in table.unique:
        return _fresh(table, column, rng) or column.quoted
    other = f"(SELECT x.{column.quoted} FROM {table.quoted} x {_some(table.rows, rng, most=1)})"
    choices = [other, _another(column, rng)]
    if column.references is None:
        choices += [new_value(column, rng), changed_value(column, rng)]
    choices += [] if column.not_null else [_null(column)]
    choices += ["DEFAULT"] if column.default else []
    return rng.choice([value for value in choices if value is not None])


def _referenced(reference: Reference, rng: random.Random) -> str:
    column = identifier(reference.column)
    return f"(SELECT r.{column} FROM {reference.table} r {_some(reference.rows, rng, most=1)})"


def _null(column: Column) -> str:
    return f"NULL::{column.type}"


def _update(
    table: Table, values: dict[Column, str], rng: random.Random, *, most: int = _MOST_ROWS
) -> str:
    listed = ", ".join(f"{column.quoted} = {value}" for column, value in values.items())
    return f"UPDATE {table.quoted} SET {listed} WHERE {_rows(table, rng, most=most)}"


def _rows(table: Table, rng: random.Random, *, most: int = _MOST_ROWS) -> str:
    """Return a condition for a few rows by ctid, since not every table has a key."""
    places = f"SELECT tableoid, ctid FROM {table.quoted} {_some(table.rows, rng, most=most)}"
    return f"(tableoid, ctid) IN ({places})"


def _some(rows: int, rng: random.Random, *, most: int = _MOST_ROWS) -> str:
    return f"OFFSET {rng.randrange(max(rows, 1))} LIMIT {rng.randint(1, most)}"
