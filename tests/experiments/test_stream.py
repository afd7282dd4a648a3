"""Labels of the stream: statements of many rows, restarts, keys that change (E4, E5, E6).

docs/decisions/0009-order.md draws its conclusions from what is asserted here.
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
"""Many Kafka transactions for one of the source, so that an interruption falls inside."""


def copy_rows(pipeline: Pipeline, count: int) -> None:
    with pipeline.source.cursor() as cursor, cursor.copy("COPY t (id, v) FROM STDIN") as copy:
        for number in range(count):
            copy.write_row((number, "copied"))


def by_transaction(labels: list[Label]) -> Iterator[list[Label]]:
    for txid in dict.fromkeys(label.txid for label in labels):
        yield [label for label in labels if label.txid == txid]


def test_statements_of_many_rows(pipeline: Pipeline) -> None:
    """E4: COPY gives a hundred rows one LSN; their number in the transaction tells them apart."""
    pipeline.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    pipeline.start()
    copy_rows(pipeline, COPIED)
    pipeline.run("UPDATE t SET v = 'updated'", "DELETE FROM t WHERE id >= 100")
    labels = pipeline.settled("t")

    copied, updated, deleted, _ = by_transaction(labels)
    assert [len(part) for part in (copied, updated, deleted)] == [COPIED, COPIED, COPIED - 100]
    assert len({found.lsn for found in copied}) < COPIED / 100
    assert len({found.lsn for found in updated}) == COPIED
    assert len({found.lsn for found in deleted}) == COPIED - 100
    for part in (copied, updated, deleted):
        assert [found.order for found in part] == list(range(1, len(part) + 1))
        assert len({found.commit for found in part}) == 1
        assert {found.sequence_lsn for found in part} == {found.lsn for found in part}
        assert pipeline.counts(part[0].txid) == [len(part)]
        lsns = [found.lsn or 0 for found in part]
        assert lsns == sorted(lsns)
    assert all(a.lsn != b.lsn or a.offset < b.offset for a, b in pairwise(copied))
    assert places(pipeline, labels) == sorted(places(pipeline, labels))
    assert replayed(labels) == in_source(pipeline, "t")


def interrupted(pipeline: Pipeline, number: int) -> tuple[int, int]:
    """Returns with a large transaction partly in Kafka: where that begins, how many events it has.

    Its first step are many rows with few LSNs, where a connector that counts LSNs loses its place.
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
    return max(by_transaction(labels), key=len)


def test_restart_inside_a_transaction(pipeline: Pipeline) -> None:
    """E5: stopped or killed, nothing comes twice, and what was aborted had the same labels."""
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
        assert [found.order for found in mine] == list(range(1, events + 1))
        assert len({found.commit for found in mine}) == 1
        assert pipeline.counts(mine[0].txid) == [events]
        attempts = pipeline.reader.labels(pipeline.topic("t"), start, committed=False)
        delivered = {found.place: (found.content, found.commit) for found in labels}
        offsets = {found.offset for found in labels}
        aborted = [found for found in attempts if found.offset not in offsets]
        assert all((a.content, a.commit) == delivered[a.place] for a in aborted)
        assert places(pipeline, labels) == sorted(places(pipeline, labels))
        assert replayed(labels) == in_source(pipeline, "t")


def test_position_turned_back(pipeline: Pipeline) -> None:
    """E5: a second delivery, as without exactly-once, has another ``sequence`` and goes back."""
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
    assert [found.order for found in seconds] == list(range(1, events + 1))
    assert firsts
    assert [f.content for f in firsts] == [f.content for f in seconds[: len(firsts)]]
    assert {f.commit for f in firsts} != {f.commit for f in seconds}
    assert going_back(labels, places(pipeline, labels))
    assert replayed(labels) == in_source(pipeline, "t")


def test_changed_keys(pipeline: Pipeline) -> None:
    """E6: a change of key is two events of one LSN; of a key that may be doubled they mislead."""
    pipeline.run(
        "CREATE TABLE t (id int PRIMARY KEY, v text)",
        "CREATE TABLE late (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, v text)",
        "ALTER TABLE late REPLICA IDENTITY FULL",
        *(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')" for name in ("t", "late")),
    )
    pipeline.start()
    for table in ("t", "late"):
        pipeline.until(table, lambda found: len(found) == 3)
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
    assert (2, "a") not in replayed(late)  # taken for the row that had the key before


def shape(labels: list[Label]) -> list[tuple[str, int]]:
    return [(label.op, label.row["id"]) for label in labels]
