"""Random definitions of derived tables over the bank's; all that Postgres and Spark calculate too.

This module only produces text.
"""

import random
from collections.abc import Mapping
from typing import Final

from tests.faults.bank.bank import TABLES

Shape = Mapping[str, tuple[str, str]]
KEYED: Final[Shape] = {
    "accounts": ("id", "balance"),
    "counters": ("name", "n"),
    "ring": ("id", "name"),
    "bulk": ("id", "change"),
    "entries": ("counter", "amount"),
    "debits": ("mark", "amount"),
    "large": ("id", "n"),
}
"""A column to join and to group by, and one of numbers."""
NAMES: Final = ("soak.first", "soak.second", "soak.third")
_AGGREGATES: Final = ("count(*)", "count({v})", "sum({v})", "min({v})", "max({v})")
_JOINS: Final = ("JOIN", "LEFT JOIN", "FULL JOIN")
_OVER: Final = "OVER (PARTITION BY e.counter ORDER BY {by})"
assert set(KEYED) - set(TABLES) == {"large"}


def definition(chance: random.Random) -> str:
    """Return the text of a definition."""
    return chance.choice([_grouped, _joined, _asked, _ranked])(chance)


def _grouped(chance: random.Random) -> str:
    table, key, value = _table(chance)
    by = chance.choice([f"t.{key}", f"t.{key} % {chance.randint(2, 9)}"])
    where = chance.choice(["", f"WHERE t.{value} % 3 <> 1 ", f"WHERE t.{key} > 3 "])
    having = chance.choice(["", " HAVING count(*) > 1"])
    aggregates = _aggregates(chance, f"t.{value}")
    return f"SELECT {by} AS part, {aggregates} FROM bank.{table} t {where}GROUP BY {by}{having}"


def _joined(chance: random.Random) -> str:
    (table, key, _), (other, there, value) = _table(chance), _table(chance)
    join = chance.choice(_JOINS)
    aggregates = _aggregates(chance, f"b.{value}")
    return (
        f"SELECT a.{key} AS part, {aggregates} FROM bank.{table} a "
        f"{join} bank.{other} b ON b.{there} = a.{key} GROUP BY a.{key}"
    )


def _asked(chance: random.Random) -> str:
    (table, key, value), (other, there, number) = _table(chance), _table(chance)
    negated = chance.choice(["", "NOT "])
    return (
        f"SELECT a.{key} AS part, a.{value} AS number FROM bank.{table} a WHERE {negated}EXISTS "
        f"(SELECT 1 FROM bank.{other} b WHERE b.{there} = a.{key} AND b.{number} % 2 = 0)"
    )


def _ranked(chance: random.Random) -> str:
    by = chance.choice(["e.version", "e.amount DESC, e.version", "e.version DESC"])
    over = _OVER.format(by=by)
    what = chance.choice(["row_number()", "lag(e.amount)", "sum(e.amount)"])
    return f"SELECT e.counter, e.version, {what} {over} AS found FROM bank.entries e"


def _table(chance: random.Random) -> tuple[str, str, str]:
    table = chance.choice(list(KEYED))
    return table, *KEYED[table]


def _aggregates(chance: random.Random, value: str) -> str:
    chosen = chance.sample(_AGGREGATES, chance.randint(1, 3))
    return ", ".join(f"{each.format(v=value)} AS a{n}" for n, each in enumerate(chosen))
