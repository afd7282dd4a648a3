"""A table is committed while the next one is calculated, unless that one reads it."""

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from cdc.derive.keep.beside import Beside
from cdc.derive.step.ready import Commit, Steps, finish
from cdc.tables import TableId
from tests.unit.derive.orders import order
from tests.unit.derive.small_lake import SmallLake, defined, rows_of

FIRST, SECOND = TableId("marts", "first"), TableId("marts", "second")
PATIENCE = 30  # seconds, for what must not be waited for


@pytest.fixture
def beside() -> Iterator[Beside]:
    with closing(Beside()) as found:
        yield found


def committing(done: list[str], name: str, commit: Commit) -> Steps[None]:
    """Note when a table is calculated, and which version its commit has made."""
    done.append(f"{name} is calculated")
    version = yield commit
    done.append(f"{name} has version {version}")


def test_a_commit_is_made_beside_the_next_calculation(beside: Beside) -> None:
    calculated, done = threading.Event(), list[str]()

    def patient() -> int:
        return 7 if calculated.wait(PATIENCE) else -1

    def second() -> Steps[None]:
        calculated.set()
        yield from committing(done, "second", lambda: 8)

    beside.run(FIRST, (), committing(done, "first", patient))
    beside.run(SECOND, (), second())
    beside.end()

    assert done == [
        "first is calculated",
        "second is calculated",
        "first has version 7",
        "second has version 8",
    ]


def test_a_table_that_reads_another_waits_for_its_commit(beside: Beside) -> None:
    done: list[str] = []

    beside.run(FIRST, (), committing(done, "first", lambda: 1))
    beside.run(SECOND, (FIRST,), committing(done, "second", lambda: 2))

    assert done == ["first is calculated", "first has version 1", "second is calculated"]


def test_an_error_of_a_commit_is_its_own_table_s(beside: Beside) -> None:
    """It may answer with another commit."""
    done: list[str] = []

    def failing() -> int:
        raise ValueError

    def twice() -> Steps[None]:
        try:
            yield failing
        except ValueError:
            yield from committing(done, "again", lambda: 5)

    beside.run(FIRST, (), twice())
    beside.run(SECOND, (), committing(done, "second", lambda: 2))
    beside.end()

    assert done == [
        "second is calculated",
        "again is calculated",
        "again has version 5",
        "second has version 2",
    ]


def test_steps_without_a_commit_end_at_once(beside: Beside) -> None:
    def nothing() -> Steps[None]:
        return
        yield

    beside.run(FIRST, (), nothing())
    beside.end()


def test_finish_makes_the_commits_itself() -> None:
    def steps() -> Steps[int]:
        return (yield lambda: 1) + (yield lambda: 2)

    assert finish(steps()) == 3


def test_at_each_cut_a_table_has_the_rows_of_the_one_that_it_reads(lake: SmallLake) -> None:
    first = defined("first", 'SELECT id, who FROM "shop"."orders"', "shop.orders")
    other = defined("other", 'SELECT who FROM "shop"."orders"', "shop.orders")
    reader = defined("reader", 'SELECT id FROM "marts"."first"', "marts.first")
    with closing(lake.keep(first, reader, other)) as kept:
        for count in (3, 5, 4):
            orders = [order(number, "a") for number in range(count)]
            lake.set(orders=orders, people=[])
            entries = kept.entries(lake.row())

            assert [len(rows_of(entry)) for entry in entries] == [count] * 3
            assert {entry.at_cut for entry in entries} == {lake.cut}
