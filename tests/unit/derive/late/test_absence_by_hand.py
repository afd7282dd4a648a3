"""At every cut, what waits and what is late is what Python finds in the transactions."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.derive.late.changing import time
from tests.unit.derive.late.waiting import (
    COUNTS,
    PAIRS,
    UNPAID,
    WAITS,
    Did,
    Order,
    Payment,
    in_cuts,
    orders,
    payments,
    waiting,
)

ALLOWED = 5
TIMES = st.none() | st.integers(0, 12).map(lambda n: n * 5)
IDS = st.integers(1, 3)
CHANGES = st.tuples(st.booleans(), IDS, st.booleans(), IDS, TIMES)
Change = tuple[bool, int, bool, int, int | None]
Drawn = Sequence[tuple[int, Sequence[Change]]]
LOGS = st.lists(st.tuples(st.integers(0, 70), st.lists(CHANGES, max_size=3)), max_size=10)


def log_of(drawn: Drawn) -> list[Did]:
    """Return transactions in which rows of both tables are inserted, then updated or deleted."""
    found: list[Did] = []
    for committed, changes in drawn:
        now: list[Did] = []
        for is_order, number, is_delete, order, minute in changes:
            done = [*found, *now]
            if is_order:
                old = next((row for row in orders(done) if row[0] == number), None)
                new = None if is_delete and old else (number, minute)
                now.append(Did(committed, orders=[(old, new)]))
            else:
                paid = next((row for row in payments(done) if row[0] == number), None)
                next_one = None if is_delete and paid else (number, order, minute)
                now.append(Did(committed, [(paid, next_one)]))
        some = [change for one in now for change in one.payments]
        found.append(Did(committed, some, [change for one in now for change in one.orders]))
    return found


@settings(max_examples=20, deadline=None)
@given(
    drawn=LOGS,
    cuts=st.integers(1, 4),
    form=st.tuples(
        st.sampled_from(["keep", "aside"]),
        st.sampled_from(["updates", "final"]),
        st.sampled_from([PAIRS, COUNTS, UNPAID]),
    ),
)
def test_at_every_cut(
    tmp_path_factory: pytest.TempPathFactory, drawn: Drawn, cuts: int, form: tuple[str, str, str]
) -> None:
    policy, emit, query = form
    did = log_of(drawn)
    text = waiting(query, f"{ALLOWED} minutes", policy, emit)

    found = in_cuts(tmp_path_factory.mktemp("lake"), text, did, cuts)

    for cut, (seen, late) in enumerate(found, 1):
        upto = did[: len(did) * cut // cuts]
        wanted = [
            row if emit == "final" else (*row, is_final)
            for order in orders(upto)
            for is_final in [is_over(order, watermark(upto))]
            if is_final or emit == "updates"
            for row in rows(order, upto, query, is_aside=policy == "aside")
        ]
        assert seen == sorted(wanted, key=repr)
        assert sorted((row[0], row[4]) for row in late) == sorted(late_images(upto, policy))


def watermark(did: Sequence[Did]) -> int | None:
    times = [
        new[2]
        for one in did
        for old, new in one.payments
        if old is None and new is not None and new[2] is not None and new[2] <= one.committed + 5
    ]
    return max(times) - ALLOWED if times else None


def is_over(order: Order, until: int | None) -> bool:
    return order[1] is not None and until is not None and order[1] + WAITS <= until


def rows(
    order: Order, did: Sequence[Did], query: str, *, is_aside: bool
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of an order: by the payments of now, or of when its wait was over."""
    over = (n for n in range(len(did) + 1) if is_over(order, watermark(did[:n])))
    upto = next(over, len(did)) if is_aside else len(did)
    mine: list[int | None] = [one[0] for one in payments(did[:upto]) if belongs(one, order)]
    placed = None if order[1] is None else time(order[1])
    if query == COUNTS:
        yield (order[0], placed, len(mine))
    elif query == PAIRS:
        yield from ((order[0], placed, number) for number in mine or [None])
    elif not mine:
        yield (order[0], placed)


def belongs(payment: Payment, order: Order) -> bool:
    _, wanted, minute = payment
    placed = order[1]
    in_time = placed is not None and minute is not None and placed <= minute <= placed + WAITS
    return wanted == order[0] and in_time


def late_images(did: Sequence[Did], policy: str) -> Iterator[tuple[int, str]]:
    """Yield each row before and after an event that the watermark before had passed."""
    before, after = ("removed", "added") if policy == "keep" else ("kept", "left out")
    for number, one in enumerate(did):
        until = watermark(did[:number])
        for old, new in one.payments:
            for row, effect in ((old, before), (new, after)):
                minute = None if row is None else row[2]
                if minute is not None and until is not None and minute <= until and row:
                    yield row[0], effect
