"""Commits a burst of changes, as fast as one connection can, to measure throughput."""

import time
from dataclasses import dataclass
from typing import Final, LiteralString

import psycopg

STATEMENTS: Final[tuple[LiteralString, ...]] = (
    (
        "update shop.customers set credit = coalesce(credit, 0) + 1"
        " where customer_id between %(n)s * 200 + 1 and %(n)s * 200 + 200"
    ),
    (
        "update shop.order_lines set quantity = quantity + 1"
        " where order_id between %(n)s * 60 + 1 and %(n)s * 60 + 60"
    ),
    (
        "update shop.orders set note = 'burst ' || %(n)s"
        " where order_id between %(n)s * 60 + 1 and %(n)s * 60 + 60"
    ),
    "delete from shop.payments where order_id between %(n)s * 60 + 1 and %(n)s * 60 + 30",
    (
        "insert into shop.payments select gen_random_uuid(), order_id, total, 'burst', now()"
        " from shop.orders where order_id between %(n)s * 60 + 1 and %(n)s * 60 + 30"
    ),
    "insert into shop.page_views select now(), n, '/burst', n from generate_series(1, 60) as n",
)
"""About 550 changes of five tables; ``n`` repeats, so that keys are changed again."""

ROUND: Final = 90  # transactions before keys repeat: the range of 18 000 customers


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """A committed burst; times are in seconds since 1970."""

    changes: int
    began: float
    last_commit_at: float  # just before the last commit
    seconds: float  # how long the source took


def burst(url: str, *, transactions: int) -> Burst:
    """Commit the transactions one after the other."""
    began, changes, committing = time.time(), 0, 0.0
    with psycopg.connect(url) as conn:
        for number in range(transactions):
            for statement in STATEMENTS:
                changes += conn.execute(statement, {"n": number % ROUND}).rowcount
            committing = time.time()
            conn.commit()
    return Burst(
        changes=changes,
        began=began,
        # The source's commit times, with which this is compared, are in milliseconds.
        last_commit_at=committing - 0.002,
        seconds=time.time() - began,
    )
