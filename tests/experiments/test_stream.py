"""Test the labels of the stream: statements of many rows, restarts, changed keys (E4, E5, E6).

The conclusions of docs/decisions/0009-order.md rest on these assertions.
"""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from cdc.waiting import until
from tests.experiments.labels import Label
from tests.experiments.pipeline import Pipeline
from tests.experiments.replay import counted, going_back, in_source, places, replayed

pytestmark = pytest.mark.integration

COPIED = 10_000
SWAP = ((1, 0), (2, 1), (0, 2))
CHAIN = ((3, 4), (4, 5))
SMALL_STEPS = {"max.batch.size": "256", "max.queue.size": "1024"}
"""Many Kafka transactions per source transaction, so that an interruption falls inside one."""


def copy_rows(pipeline: Pipeline, count: int) -> None:
    """Insert rows by one COPY."""
    with pipeline.source.cursor() as cursor, cursor.copy("COPY t (id, v) FROM STDIN") as copy:
        for number in range(count):
            copy.write_row((number, "copied"))


def by_transaction(labels: list[Label]) -> Iterator[list[Label]]:
    """Yield the events of each transaction."""
    for txid in dict.fromkeys(label.txid for label in labels):
        yield [label for label in labels if label.txid == txid]


def test_statements_of_many_rows(pipeline: Pipeline) -> None:
    """E4: a hundred rows of a COPY share an LSN; their number in the transaction differs."""
    pipeline.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    pipeline.start()
    copy_rows(pipeline, COPIED)
    pipeline.run("UPDATE t SET v = 'updated'", "DELETE FROM t WHERE id >= 100")
    labels = pipeline.settled("t")

    copied, updated, deleted, _ = by_transaction(labels)
    assert [len(part) for part in (copied, updated, deleted)] == [COPIED, COPIED, COPIED - 100]
    assert len({event.lsn for event in copied}) < COPIED / 100
    assert len({event.lsn for event in updated}) == COPIED
    assert len({event.lsn for event in deleted}) == COPIED - 100
    for part in (copied, updated, deleted):
        assert [event.order for event in part] == list(range(1, len(part) + 1))
        assert len({event.commit for event in part}) == 1
        assert {event.sequence_lsn for event in part} == {event.lsn for event in part}
        assert pipeline.counts(part[0].txid) == [len(part)]
        lsns = [event.lsn or 0 for event in part]
        assert lsns == sorted(lsns)
    assert all(a.lsn != b.lsn or a.offset < b.offset for a, b in pairwise(copied))
    assert places(pipeline, labels) == sorted(places(pipeline, labels))
    assert replayed(labels) == in_source(pipeline, "t")


def interrupted(pipeline: Pipeline, number: int) -> tuple[int, int]:
    """Commit a large transaction and return when part of it is in Kafka: its start and its events.

    It begins with many rows of few LSNs, where a connector that counts LSNs loses its place.
    """
    start = pipeline.end("t")
    ((rows,),) = pipeline.run("SELECT count(*) FROM t")
    with pipeline.source.transaction():
        pipeline.run("DELETE FROM t", "INSERT INTO t VALUES (-1, '')")
        pipeline.run(*(f"UPDATE t SET v = '{n}' WHERE id = -1" for n in range(99)))
        copy_rows(pipeline, 4000)
        pipeline.run(f"UPDATE t SET v = 'updated {number}' WHERE id % 2 = 0")
    until(lambda: pipeline.end("t") > start + 100, 60, "nothing arrived")
    return start, rows + 6100


def largest(labels: list[Label]) -> list[Label]:
    """Return the events of the largest transaction."""
    return max(by_transaction(labels), key=len)


def test_restart_inside_a_transaction(pipeline: Pipeline) -> None:
    """E5: after a stop or a kill no event is doubled, and aborted ones had the same labels."""
    pipeline.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    pipeline.start()
    pipeline.set(SMALL_STEPS)
    pipeline.settled("t")
    worker = pipeline.stack.servers["connect"]
    steps = ((pipeline.stop, pipeline.resume), (worker.kill, worker.start))
    for number, (end, again) in enumerate(steps):
        start, events = interrupted(pipeline, number)
        end()
        assert pipeline.end("t") < start + events, "it was not inside"
        again()
        labels = pipeline.settled("t", start)

        mine = largest(labels)
        assert [event.order for event in mine] == list(range(1, events + 1))
        assert len({event.commit for event in mine}) == 1
        assert pipeline.counts(mine[0].txid) == [events]
        attempts = pipeline.reader.labels(pipeline.topic("t"), start, committed=False)
        delivered = {event.place: (event.content, event.commit) for event in labels}
        offsets = {event.offset for event in labels}
        aborted = [event for event in attempts if event.offset not in offsets]
        assert all((a.content, a.commit) == delivered[a.place] for a in aborted)
        assert places(pipeline, labels) == sorted(places(pipeline, labels))
        assert replayed(labels) == in_source(pipeline, "t")


def test_position_turned_back(pipeline: Pipeline) -> None:
    """E5: a second delivery, as without exactly-once, goes back and has another ``sequence``."""
    pipeline.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    pipeline.start()
    pipeline.set(SMALL_STEPS)
    pipeline.settled("t")
    until(lambda: pipeline.offsets().get("messageType") == "COMMIT", 60, "no position")
    saved = pipeline.offsets()
    pipeline.settled("t")
    start, events = interrupted(pipeline, 0)
    pipeline.stop()
    assert pipeline.end("t") < start + events, "it was not inside"
    pipeline.turn_back(saved)
    pipeline.resume()
    labels = pipeline.settled("t")

    mine = largest(labels)
    firsts, seconds = mine[: len(mine) - events], mine[len(mine) - events :]
    assert [event.order for event in seconds] == list(range(1, events + 1))
    assert firsts
    assert [f.content for f in firsts] == [f.content for f in seconds[: len(firsts)]]
    assert {f.commit for f in firsts} != {f.commit for f in seconds}
    assert going_back(labels, places(pipeline, labels))
    assert replayed(labels) == in_source(pipeline, "t")


def test_changed_keys(pipeline: Pipeline) -> None:
    """E6: a change of key is two events of one LSN; with a deferrable key they mislead."""
    pipeline.run(
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "CREATE TABLE late (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, v text)",
        "ALTER TABLE late REPLICA IDENTITY FULL",
        *(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')" for name in ("t", "late")),
    )
    pipeline.start()
    for table in ("t", "late"):
        pipeline.until(table, lambda labels: len(labels) == 3)
    with pipeline.source.transaction():  # a swap
        pipeline.run(
            *(f"UPDATE t SET id = {b} WHERE id = {a}" for a, b in ((1, 0), (2, 1), (0, 2)))
        )
    with pipeline.source.transaction():  # a chain
        pipeline.run(*(f"UPDATE t SET id = {b} WHERE id = {a}" for a, b in CHAIN))
    pipeline.run("UPDATE late SET id = 3 - id WHERE id < 3")
    with pipeline.source.transaction():
        pipeline.run("INSERT INTO late VALUES (3, 'd')", "DELETE FROM late WHERE v = 'c'")
    labels, late = pipeline.settled("t"), pipeline.settled("late")

    assert shape(labels[3:-1]) == [
        ("d", 1), ("c", 0), ("d", 2), ("c", 1), ("d", 0), ("c", 2),
        ("d", 3), ("c", 4), ("d", 4), ("c", 5),
    ]  # fmt: skip
    moved = labels[3:-1]
    for gone, here in zip(moved[::2], moved[1::2], strict=True):
        assert gone.lsn == here.lsn
        assert (gone.txid, (gone.order or 0) + 1) == here.place
    assert places(pipeline, labels) == sorted(places(pipeline, labels))
    assert replayed(labels) == in_source(pipeline, "t")

    assert shape(late[3:-1]) == [("d", 1), ("c", 2), ("d", 2), ("c", 1), ("c", 3), ("d", 3)]
    assert counted(late) == in_source(pipeline, "late")
    assert replayed(late) != in_source(pipeline, "late")
    assert (2, "a") not in replayed(late)  # mistaken for the row that had the key before


def shape(labels: list[Label]) -> list[tuple[str, int]]:
    """Return the operation and key of each event."""
    return [(label.op, label.row["id"]) for label in labels]
