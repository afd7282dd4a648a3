"""Random transactions: several statements, savepoints among them, an end of either kind."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.soak.schema.facts import Database, Statement
from tests.soak.schema.rows import pick, row_change

_MOST: int = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """``guarded``: a statement that is refused is undone alone, and not the whole."""

    statements: tuple[Statement, ...]
    guarded: bool
    commits: bool


def transaction(database: Database, rng: random.Random) -> Transaction:
    return Transaction(
        statements=tuple(_statements(database, rng)),
        guarded=rng.random() < 0.7,
        commits=rng.random() < 0.85,
    )


def _statements(database: Database, rng: random.Random) -> Iterator[Statement]:
    """One table half of the time, so that rows meet."""
    table = pick(database, rng)
    for _ in range(rng.randint(1, _MOST)):
        if rng.random() < 0.4:
            table = pick(database, rng)
        change = row_change(table, rng)
        if rng.random() < 0.1:
            undone = f"SAVEPOINT soak_inner; {change.sql}; ROLLBACK TO soak_inner"
            yield Statement(kind=f"{change.kind}, undone", sql=undone)
        else:
            yield change
