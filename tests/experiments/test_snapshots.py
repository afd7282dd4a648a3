"""Test where the rows of a snapshot are placed among the events of the stream (E1, E2, E3).

The conclusions of docs/decisions/0009-order.md rest on these assertions.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from cdc.capture.continuity import in_first_snapshot
from cdc.events.fold import UnknownValueError
from cdc.source.server import slot
from cdc.source.server.connection import Connection
from cdc.waiting import until
from tests.events.recorded import unchanged_by
from tests.experiments.labels import Label
from tests.experiments.pipeline import SIGNALS, Pipeline
from tests.experiments.replay import in_source, places, replayed, replayed_in

pytestmark = pytest.mark.integration

UPDATES = 1000


def reads(labels: list[Label]) -> list[Label]:
    """Return the events of snapshots."""
    return [label for label in labels if label.op == "r"]


def row_of(labels: list[Label], key: int) -> dict[str, object]:
    """Return the row of the first event of a key."""
    return next(label.row for label in labels if label.row["id"] == key)


def begin(session: Connection) -> None:
    """Begin a transaction with an xid: the slot waits only for those."""
    session.execute("BEGIN")
    session.execute("SELECT pg_current_xact_id()")


def test_open_at_the_first_snapshot(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    """E1: a change written before the snapshot but committed after it has a lower LSN."""
    monkeypatch.setattr(slot, "probe", lambda *_: None)  # the probe would wait for all of them
    pipeline.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    pipeline.run("INSERT INTO t VALUES (1, 'old'), (2, 'old')")
    with (
        pipeline.session() as first,
        pipeline.session() as second,
        pipeline.session() as third,
        ThreadPoolExecutor(1) as pool,
    ):
        begin(first)
        starting = pool.submit(pipeline.start)
        pipeline.until_blocked(first)
        begin(second)
        first.execute("COMMIT")
        # From here on the slot decodes every transaction that begins, and waits for the second.
        pipeline.until_blocked(second)
        begin(third)
        third.execute("UPDATE t SET v = 'new' WHERE id = 1")
        second.execute("COMMIT")
        starting.result()
        pipeline.until("t", lambda labels: len(labels) == 2)
        pipeline.run("UPDATE t SET v = 'later' WHERE id = 2")
        third.execute("COMMIT")
    labels = pipeline.settled("t")

    snapshot, stream = labels[:2], labels[2:]
    (label,) = {(event.commit, event.lsn, event.sequence_lsn) for event in snapshot}
    assert label == (None, snapshot[0].lsn, snapshot[0].lsn)
    assert {event.transaction for event in snapshot} == {None}
    assert row_of(snapshot, 1) == {"id": 1, "v": "old"}
    assert row_of(stream, 1) == {"id": 1, "v": "new"}
    lsns = [event.lsn or 0 for event in stream]
    assert lsns[1] < (snapshot[0].lsn or 0) < lsns[0] < lsns[2]
    assert [event.commit for event in stream] == sorted(event.commit or 0 for event in stream)
    assert places(pipeline, stream) == sorted(places(pipeline, stream))
    assert replayed(labels) == in_source(pipeline, "t")
    by_lsn = sorted(labels, key=lambda event: event.lsn or 0)
    assert replayed_in(by_lsn) != in_source(pipeline, "t")


def overtaken_snapshot(pipeline: Pipeline, round_: str) -> list[Label]:
    """Take a blocking snapshot that is ahead of the stream; return the events of t around it."""
    start = pipeline.end("t")
    with pipeline.session() as a, pipeline.session() as late, pipeline.session() as lock:
        begin(a)
        a.execute("UPDATE t SET v = 'a' WHERE id = 1")
        begin(late)
        late.execute(f"UPDATE t SET v = 'late {round_}' WHERE id = 2".encode())
        pipeline.run("UPDATE t SET v = 'b' WHERE id = 3")
        a.execute("COMMIT")
        begin(lock)
        lock.execute("LOCK TABLE u IN ACCESS EXCLUSIVE MODE")
        with pipeline.source.transaction():
            pipeline.run(
                pipeline.signal("blocking", "[tu]"),
                f"DO $$ BEGIN FOR i IN 0..{UPDATES} LOOP UPDATE t SET n = i WHERE id = 4; "
                "END LOOP; END $$",
                "UPDATE t SET n = 1 WHERE id = 5",
                "DELETE FROM t WHERE id = 5",
            )
        pipeline.until_blocked(lock)  # t is read, u is not
        pipeline.run(f"UPDATE t SET v = '{round_}' WHERE id = 6")
        lock.execute(f"UPDATE u SET v = '{round_}' WHERE id = 6".encode())
        lock.execute("COMMIT")
        pipeline.until("u", lambda labels: labels[-1].op == "u")  # the stream goes on
        late.execute("COMMIT")
    return pipeline.settled("t", start)


def test_blocking_snapshot(pipeline: Pipeline) -> None:
    """E2: the snapshot is ahead of the stream, which then shows earlier states once more."""
    large = "repeat('x', 5000)"
    pipeline.run(
        "CREATE TABLE t (id int PRIMARY KEY, v text, n int, big text)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        f"INSERT INTO t SELECT i, 'old', -1, {large} FROM generate_series(1, 6) i",
        "CREATE TABLE u (id int PRIMARY KEY, v text)",
        "INSERT INTO u VALUES (6, 'old')",
    )
    pipeline.start(signals=True)
    unchanged = unchanged_by(pipeline.placeholder)
    pipeline.until("t", lambda labels: len(labels) == 6)
    pipeline.until("u", lambda labels: len(labels) == 1)
    for round_ in ("same run", "restarted"):
        if round_ == "restarted":
            pipeline.stop()
            pipeline.resume()
            pipeline.run(f"INSERT INTO t VALUES (5, 'old', -1, {large})")
        around = overtaken_snapshot(pipeline, round_)
        again = reads(around)

        signal = pipeline.signals()[-1]
        (label,) = {(f.commit, f.lsn, f.sequence_lsn, f.txid, f.transaction) for f in again}
        streamed = [f for f in around if f.offset < again[0].offset and f.txid == signal.txid]
        last = [signal, *streamed][-1]  # the last event that the stream had reached
        assert label == (signal.commit, last.lsn, last.lsn, signal.txid, None)
        later, earlier = (f for f in around if f.op == "u" and f.row["v"] in {"a", "b"})
        assert (later.row["v"], earlier.row["v"]) == ("b", "a")
        assert (later.lsn or 0) > (earlier.lsn or 0)
        # The snapshot has the signal's whole transaction; the rest of its events come after it.
        after = [f for f in around if f.offset > again[-1].offset]
        assert row_of(again, 4)["n"] == UPDATES
        assert row_of(after, 4)["n"] != UPDATES
        # The isolation level is set only in the run that created the slot.
        other = reads(pipeline.settled("u"))[-1]
        assert row_of(again, 6)["v"] != round_
        assert other.row["v"] == ("old" if round_ == "same run" else round_)
        everything = pipeline.settled("t")
        assert replayed(everything, unchanged=unchanged) == in_source(pipeline, "t")
        with pytest.raises(UnknownValueError, match="big"):  # a row that the snapshot lacks
            replayed([*again, *after], unchanged=unchanged)


def test_blocking_snapshot_that_was_killed(
    pipeline: Pipeline, request: pytest.FixtureRequest
) -> None:
    """E2: the snapshot is not resumed, and ``snapshot`` is wrong on every later event."""
    if not request.config.getoption("--deep"):
        pytest.skip("kills the worker: run with --deep")
    for table in "tu":
        pipeline.run(f"CREATE TABLE {table} (id int PRIMARY KEY, v text)")
        pipeline.run(f"INSERT INTO {table} VALUES (1, 'old'), (2, 'old')")
    pipeline.start(signals=True)
    pipeline.until("t", lambda labels: len(labels) == 2)
    pipeline.until("u", lambda labels: len(labels) == 2)
    with pipeline.session() as lock:
        begin(lock)
        lock.execute("LOCK TABLE u IN ACCESS EXCLUSIVE MODE")
        pipeline.run(pipeline.signal("blocking", "[tu]"))
        pipeline.until_blocked(lock)
        pipeline.until("t", lambda labels: len(reads(labels)) > 2)
        pipeline.stack.servers["connect"].kill()
    pipeline.stack.servers["connect"].start()

    t, u = pipeline.settled("t"), pipeline.settled("u")

    assert len(reads(t)) < 4
    assert len(reads(u)) == 2
    assert {t[-1].snapshot, u[-1].snapshot} == {"true"}
    assert pipeline.offsets()["snapshot"] == "BLOCKING"
    assert pipeline.offsets()["snapshot_completed"] is False
    assert not in_first_snapshot(pipeline.offsets())
    assert replayed(t) == in_source(pipeline, "t")


@contextmanager
def gated(pipeline: Pipeline) -> Iterator[Connection]:
    """Keep the window of an incremental snapshot open while the session holds its lock."""
    pipeline.run(
        f"CREATE FUNCTION {pipeline.name}.gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF NEW.type LIKE '%close' THEN PERFORM pg_advisory_xact_lock(1); END IF; "
        "RETURN NEW; END $$",
        f"CREATE TRIGGER gate BEFORE INSERT ON {SIGNALS}"
        f" FOR EACH ROW EXECUTE FUNCTION {pipeline.name}.gate()",
    )
    try:
        with pipeline.session() as gate:
            gate.execute("SELECT pg_advisory_lock(1)")
            yield gate
    finally:
        pipeline.run(f"DROP TRIGGER gate ON {SIGNALS}")


def test_incremental_snapshot(pipeline: Pipeline) -> None:
    """E3: its rows are placed where they were true, without rows changed meanwhile."""
    pipeline.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    pipeline.run("INSERT INTO t SELECT i, 'old' FROM generate_series(1, 8) i")
    pipeline.start(signals=True)
    pipeline.until("t", lambda labels: len(labels) == 8)
    with gated(pipeline) as gate, pipeline.session() as inside, pipeline.session() as after:
        for session, key in ((inside, 2), (after, 3)):
            begin(session)
            session.execute(f"UPDATE t SET v = 'long' WHERE id = {key}".encode())
        pipeline.run(pipeline.signal("incremental", "t"))
        pipeline.until_blocked(gate)  # the rows are read, with the old values of both
        inside.execute("COMMIT")
        pipeline.run(
            "DELETE FROM t WHERE id = 4",
            "UPDATE t SET v = 'new' WHERE id = 5",
            "UPDATE t SET id = 60 WHERE id = 6",
            "INSERT INTO t VALUES (9, 'new')",
        )
        gate.execute("SELECT pg_advisory_unlock(1)")
        pipeline.until("t", lambda labels: labels[-1].snapshot == "incremental")
        after.execute("COMMIT")
    labels = pipeline.settled("t")

    again = reads(labels)[8:]
    assert {f.row["id"]: f.row["v"] for f in again} == dict.fromkeys((1, 3, 7, 8), "old")
    (label,) = {(f.lsn, f.txid, f.transaction, f.snapshot) for f in again}
    assert label == (None, None, None, "incremental")
    (sequence,) = {(f.commit, f.sequence_lsn) for f in again}
    closed = next(f for f in pipeline.signals() if str(f.row["type"]).endswith("close"))
    assert sequence == (closed.commit, closed.commit)
    assert row_of(labels[labels.index(again[-1]) :], 3) == {"id": 3, "v": "long"}
    stream = [f for f in labels if f.op != "r"]
    assert places(pipeline, stream) == sorted(places(pipeline, stream))
    assert replayed(labels) == in_source(pipeline, "t")


def test_incremental_snapshot_without_writing(pipeline: Pipeline) -> None:
    """E3: with ``read.only``, xids define the window; the labels are the same."""
    pipeline.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    pipeline.run("INSERT INTO t SELECT i, 'old' FROM generate_series(1, 4) i")
    pipeline.start(signals=True)
    pipeline.until("t", lambda labels: len(labels) == 4)
    pipeline.set({"read.only": "true"})
    with pipeline.session() as inside, pipeline.session() as after:
        for session, key in ((inside, 2), (after, 3)):
            begin(session)
            session.execute(f"UPDATE t SET v = 'long' WHERE id = {key}".encode())
        pipeline.run(pipeline.signal("incremental", "t"))
        until(lambda: bool(pipeline.signals()), 60, "no signal")  # by then the rows have been read
        inside.execute("COMMIT")
        pipeline.run("UPDATE t SET v = 'new' WHERE id = 4")
        pipeline.until("t", lambda labels: labels[-1].row["id"] == 4 and len(reads(labels)) > 4)
        after.execute("COMMIT")
    labels = pipeline.settled("t")

    assert [signal.row["type"] for signal in pipeline.signals()] == ["execute-snapshot"]
    again = reads(labels)[4:]
    assert row_of(again, 3) == {"id": 3, "v": "old"}
    (label,) = {(f.lsn, f.txid, f.transaction, f.snapshot) for f in again}
    assert label == (None, None, None, "incremental")
    assert row_of(labels[labels.index(again[-1]) :], 3) == {"id": 3, "v": "long"}
    assert replayed(labels) == in_source(pipeline, "t")


@contextmanager
def acknowledged_by_nobody(pipeline: Pipeline) -> Iterator[None]:
    """Make commits wait for a missing standby, unless their session says otherwise."""
    pipeline.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
    try:
        shown = "SHOW synchronous_standby_names"
        until(lambda: pipeline.run(shown) == [("nobody",)], 60, "not loaded")
        yield
    finally:
        pipeline.run(
            "ALTER SYSTEM RESET synchronous_standby_names",
            f"ALTER DATABASE {pipeline.source.info.dbname} RESET synchronous_commit",
            "SELECT pg_reload_conf()",
        )


def test_commit_that_nobody_sees_yet(pipeline: Pipeline) -> None:
    """E2, E3: a snapshot on demand may put the old row after the event that replaced it, for good.

    Every commit is in the WAL, and so in the stream, a moment before any query sees it. Here it
    waits for a standby, so that the moment lasts as long as the test needs.
    """
    local = "SET synchronous_commit = local"
    pipeline.run(f"ALTER DATABASE {pipeline.source.info.dbname} {local}", local)
    pipeline.run("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'old')")
    pipeline.start(signals=True)
    pipeline.until("t", lambda labels: len(labels) == 1)
    for kind in ("blocking", "incremental"):
        start = pipeline.settled("t")[-1].offset + 1
        with pipeline.session() as session, ThreadPoolExecutor(1) as pool:
            session.execute("SET synchronous_commit = on")
            with acknowledged_by_nobody(pipeline):
                update = f"UPDATE t SET v = '{kind}' WHERE id = 1".encode()
                commit = pool.submit(session.execute, update)
                pipeline.until("t", lambda labels: labels[-1].op == "u", start)
                pipeline.run(pipeline.signal(kind, "t"))
                pipeline.until("t", lambda labels: bool(reads(labels)), start)
                assert not commit.done()
            commit.result()
        labels = pipeline.settled("t", start)

        update_, again = labels[0], next(f for f in reads(labels) if f.row["id"] == 1)
        assert (update_.row["v"], again.row["v"]) == (kind, "old")
        assert (again.commit or 0) > (update_.commit or 0)
        assert (1, "old") in replayed(labels)
        assert (1, kind) in in_source(pipeline, "t")
        pipeline.run("UPDATE t SET v = 'old' WHERE id = 1")
