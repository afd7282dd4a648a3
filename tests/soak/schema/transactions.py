"""Random transactions: several statements, some in savepoints, then COMMIT or ROLLBACK."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.soak.schema.facts import Database, Statement
from tests.soak.schema.rows import pick, row_change

_MOST: int = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A transaction; if ``guarded``, a refused statement is undone alone."""

    statements: tuple[Statement, ...]
    guarded: bool
    commits: bool


def transaction(database: Database, rng: random.Random) -> Transaction:
    """Return a random transaction."""
    return Transaction(
        statements=tuple(_statements(database, rng)),
        guarded=rng.random() < 0.7,
        commits=rng.random() < 0.85,
    )


def _statements(database: Database, rng: random.Random) -> Iterator[Statement]:
    """Yield statements that mostly stay with one table, so that they touch the same rows."""
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
