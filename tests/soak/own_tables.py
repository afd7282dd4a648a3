"""The walk's own tables besides the bank's: a large, a wide, and one whose columns change.

This module only produces SQL. Every change may be repeated and leaves the table about as large as
before, so that growth in a long run comes from the lake.
"""

import random
from dataclasses import dataclass, field
from typing import Final

LARGE: Final = 20_000  # rows of the largest transaction, and the most of its table
WIDE: Final = 200  # columns
WIDE_ROWS: Final = 300
KEPT: Final = 40  # rows kept in bank.shifting
MOST_COLUMNS: Final = 12  # added to bank.shifting at any time
_KINDS: Final = ("int", "text", "numeric(8,2)")  # of the wide table's columns, in turn
_NEW: Final = {"int": "7", "text": "'new'", "numeric(8,2)": "1.25", "boolean": "true"}
"""Types of new columns, each with a constant default."""


def _wide_columns() -> str:
    return ", ".join(f"c{i} {_KINDS[i % len(_KINDS)]}" for i in range(1, WIDE))


SQL: Final = f"""
CREATE TABLE bank.large (id int PRIMARY KEY, n bigint NOT NULL, body text);
CREATE TABLE bank.wide (id int PRIMARY KEY, {_wide_columns()});
CREATE TABLE bank.shifting (id int PRIMARY KEY, word text);
INSERT INTO bank.large SELECT i, 0, 'body ' || i FROM generate_series(1, 1000) i;
INSERT INTO bank.wide (id, c1) SELECT i, 0 FROM generate_series(1, 20) i;
INSERT INTO bank.shifting SELECT -i, 'word ' || i FROM generate_series(1, 20) i;
"""
TABLES: Final = ("large", "wide", "shifting")


def upsert_many(rng: random.Random, number: int) -> str:
    """Return an upsert of thousands of rows in one transaction."""
    rows = rng.choice([5_000, LARGE])
    return (
        f"INSERT INTO bank.large SELECT i, {number}, 'body ' || i "
        f"FROM generate_series(1, {rows}) i "
        "ON CONFLICT (id) DO UPDATE SET n = excluded.n"
    )


def delete_many(rng: random.Random, _number: int) -> str:
    """Return a DELETE of about a third of the large table."""
    return f"DELETE FROM bank.large WHERE id % {rng.randint(2, 4)} = {rng.randint(0, 1)}"


def upsert_wide(rng: random.Random, number: int) -> str:
    """Return an upsert of the wide table that changes a third of its columns."""
    which = rng.randrange(len(_KINDS))
    columns = [i for i in range(1, WIDE) if i % len(_KINDS) == which]
    value = {"int": "{}", "text": "'n{}'", "numeric(8,2)": "{}.25"}[_KINDS[which]].format(number)
    changed = ", ".join(f"c{i} = {value}" for i in columns)
    return (
        f"INSERT INTO bank.wide (id) SELECT i FROM generate_series(1, {WIDE_ROWS}) i "
        f"ON CONFLICT DO NOTHING; UPDATE bank.wide SET {changed}"
    )


def truncate(rng: random.Random, number: int) -> str:
    """Return a TRUNCATE, alone or with new rows in the same transaction."""
    table = rng.choice(["large", "wide"])
    column = {"large": "n", "wide": "c1"}[table]
    again = f"; INSERT INTO bank.{table} (id, {column}) SELECT i, {number} FROM "
    again += "generate_series(1, 50) i"
    return f"TRUNCATE bank.{table}" + (again if rng.random() < 0.5 else "")


ROWS: Final = {
    "large transaction": upsert_many,
    "large delete": delete_many,
    "wide transaction": upsert_wide,
    "truncate": truncate,
}


@dataclass
class Shifting:
    """The columns added to ``bank.shifting`` so far, which may be dropped or renamed."""

    columns: list[str] = field(default_factory=list)

    def change(self, rng: random.Random, number: int) -> tuple[str, str]:
        """Return a change's name and SQL: one transaction with rows before and after the ALTER."""
        what = rng.choices(["add", "drop", "rename"], [4, 3, 3])[0]
        if not self.columns:
            what = "add"
        elif len(self.columns) >= MOST_COLUMNS:
            what = "drop"
        alteration = {"add": self._add, "drop": self._drop, "rename": self._rename}[what](
            rng, number
        )
        return f"{what} column", "; ".join(
            (
                f"INSERT INTO bank.shifting (id, word) VALUES ({2 * number}, 'before')",
                f"ALTER TABLE bank.shifting {alteration}",
                f"INSERT INTO bank.shifting (id, word) VALUES ({2 * number + 1}, 'behind')",
                f"UPDATE bank.shifting SET word = 'all {number}' WHERE id % 3 = {number % 3}",
                f"DELETE FROM bank.shifting WHERE id BETWEEN 0 AND {2 * number - KEPT}",
            )
        )

    def _add(self, rng: random.Random, number: int) -> str:
        name, kind = f"c{number}", rng.choice(list(_NEW))
        self.columns.append(name)
        default = f" DEFAULT {_NEW[kind]}" if rng.random() < 0.6 else ""
        return f"ADD COLUMN {name} {kind}{default}"

    def _drop(self, rng: random.Random, _number: int) -> str:
        name = rng.choice(self.columns)
        self.columns.remove(name)
        return f"DROP COLUMN {name}"

    def _rename(self, rng: random.Random, number: int) -> str:
        place = rng.randrange(len(self.columns))
        old, self.columns[place] = self.columns[place], f"c{number}"
        return f"RENAME COLUMN {old} TO c{number}"
