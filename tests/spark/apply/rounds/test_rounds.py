"""The tables have Postgres's rows after recorded events of a connector land and are applied."""

import base64
import io
import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from cdc.apply.table import spark_plans
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.table import store
from tests.spark.recorded_pipeline import (
    COMPOSITE,
    MARKERS,
    NO_KEY,
    ORDERS,
    PREFIX,
    SCHEMAS,
    TOASTY,
    Pipeline,
    assert_equal_to_source,
    ends_of,
    landed_topics,
    sorted_rows,
)

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("in_memory", [False, True], ids=["spark", "driver"])
def test_tables_equal_the_source_after_one_landing(
    spark: SparkSession, tmp_path: Path, in_memory: bool
) -> None:
    pipeline = Pipeline(spark, tmp_path, in_memory=in_memory)
    pipeline.land(landed_topics())

    pipeline.settle()

    assert_equal_to_source(pipeline)
    last = pipeline.ledger.last()
    assert last is not None
    assert {entry.state for entry in last.tables} == {"streaming"}
    ways = {table.way.split(":")[0] for table in pipeline.tables.by_topic.values()}
    assert ways == {"driver" if in_memory else "spark"}
    timed = {name for name, times in pipeline.stages.as_json().items() if times["count"]}
    here = {"decode", "reduce", "commit"} if in_memory else set()
    assert timed == {"look", "publish"} | here


@pytest.mark.parametrize(
    "in_memory",
    [pytest.param(False, marks=pytest.mark.deep, id="spark"), pytest.param(True, id="driver")],
)
@pytest.mark.parametrize("size", [23])
def test_tables_equal_the_source_with_a_restart_between_any_two_landings(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    in_memory: bool,
) -> None:
    monkeypatch.setattr(spark_plans, "FEW", 0)  # with generated code, as for many events
    pipeline = Pipeline(spark, tmp_path, budget=5, in_memory=in_memory)
    records = landed_topics()
    for begin in range(0, len(records), size):
        pipeline.land(records[begin : begin + size])
        pipeline.settle()
        pipeline.start()

    assert_equal_to_source(pipeline)
    lsns = [row.lsn for row in pipeline.ledger.rows() if row.lsn is not None]
    assert lsns == sorted(lsns)


@pytest.mark.deep
def test_a_table_is_rebuilt_even_if_a_landing_ends_inside_a_change_of_key(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A landing may end anywhere; the first event's row has the values that the second omits."""
    pipeline = Pipeline(spark, tmp_path, budget=1)
    topic = TOASTY.table.topic(PREFIX)
    records = landed_topics()
    halves = [i for i, r in enumerate(records) if r["topic"] == topic and r["headers"]]
    first, tombstone, second = halves
    for begin, end in ((0, first + 1), (first + 1, tombstone + 1), (tombstone + 1, len(records))):
        pipeline.land(records[begin:end])
    pipeline.settle()
    shutil.rmtree(tmp_path / TOASTY.table.name)

    pipeline.start()

    assert first < tombstone < second
    assert_equal_to_source(pipeline)
    assert pipeline.quarantine.rows() == []


@pytest.mark.parametrize("landed", ["one by one", "all at once"])
def test_no_cut_passes_rows_of_the_first_snapshot_that_have_not_landed(
    spark: SparkSession, tmp_path: Path, landed: str
) -> None:
    """A landing has a share of every topic, so markers land before the last rows of a large one."""
    topic = ORDERS.table.topic(PREFIX)
    records = landed_topics()
    mine = [record for record in records if record["topic"] == topic]
    pipeline = Pipeline(spark, tmp_path, budget=1)
    pipeline.ends = ends_of(records)

    pipeline.land([record for record in records if record not in mine[1:]])
    if landed == "one by one":
        pipeline.settle()
        assert [row.lsn for row in pipeline.ledger.rows()] == [None]
    pipeline.land(mine[1:3])
    pipeline.land(mine[3:])
    pipeline.settle()

    cuts = list(pipeline.ledger.rows())
    whole = max(record["offset"] for record in mine if _is_read(record))
    entries = [(row.lsn, row.entry(str(ORDERS.table))) for row in cuts]
    assert {lsn is None for lsn, _ in entries} == {True, False}
    assert all(entry is not None and entry.offset >= whole for lsn, entry in entries if lsn)
    assert {entry.state for entry in cuts[-1].tables} == {"streaming"}
    assert_equal_to_source(pipeline)


def test_a_table_without_snapshot_rows_is_snapshotting_until_the_snapshot_s_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It may have been emptied meanwhile. The end is read once, and kept in the ledger."""
    topic = ORDERS.table.topic(PREFIX)
    records = [r for r in landed_topics() if r["topic"] != topic or not _is_read(r)]
    lsns = [row.lsn for row in _cuts(spark, tmp_path / "before", records)]
    end = sorted(lsn for lsn in lsns if lsn is not None)[2]

    cuts = _cuts(spark, tmp_path / "now", records, end)

    states = {
        (row.lsn is not None and row.lsn >= end, entry.table == str(ORDERS.table), entry.state)
        for row in cuts
        for entry in row.tables
        if row.lsn is not None
    }
    assert states == {
        (False, True, "snapshotting"),
        (False, False, "streaming"),
        (True, True, "streaming"),
        (True, False, "streaming"),
    }
    assert {row.snapshot_end for row in cuts if row.lsn is not None} == {end}


def _cuts(
    spark: SparkSession, root: Path, records: list[dict[str, Any]], *ends: int
) -> list[LedgerRow]:
    """Return the cuts of a job that gets each of ``ends`` once as the end of the source's WAL."""
    root.mkdir()
    pipeline = Pipeline(spark, root, budget=1)
    pipeline.ends, places = ends_of(records), iter(ends)
    if ends:
        pipeline.wal_end = lambda: next(places)
    for begin in range(0, len(records), 12):
        pipeline.land(records[begin : begin + 12])
        pipeline.settle()
    return list(pipeline.ledger.rows())


def test_the_first_cut_of_the_stream_is_repeated_after_a_crash(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables show that the snapshot was complete, so Kafka is not asked again."""
    records = landed_topics()
    pipeline = Pipeline(spark, tmp_path)
    pipeline.ends = ends_of(records)
    pipeline.land(records)
    append = Ledger.append

    def killed(ledger: Ledger, row: LedgerRow) -> None:
        if row.lsn is not None:
            raise KeyboardInterrupt
        append(ledger, row)

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "append", killed)
        with pytest.raises(KeyboardInterrupt):
            pipeline.settle()
    assert [row.lsn for row in pipeline.ledger.rows()] == [None]

    pipeline.ends = {MARKERS: 2**40}
    pipeline.start()
    pipeline.settle()

    last = pipeline.ledger.last()
    assert last is not None
    assert last.lsn is not None
    assert_equal_to_source(pipeline)


def test_events_that_a_crash_left_unpublished_are_applied_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a table without a key, events between the last cut and the tables would count twice."""
    topic = NO_KEY.table.topic(PREFIX)
    records = [dict(record) for record in landed_topics()]
    mine = [i for i, r in enumerate(records) if r["topic"] == topic]
    emptied = next(i for i in mine if records[i]["value"] and _op(records[i]) == "t")
    row = {"op": "c", "after": {"x": 3, "y": "not emptied"}}
    records[emptied]["value"] = _with(records[emptied]["value"], **row)
    pipeline = Pipeline(spark, tmp_path)
    pipeline.land(records[: mine[2]])
    pipeline.settle()
    pipeline.land(records[mine[2] : emptied])
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "append", _killed)
        with pytest.raises(KeyboardInterrupt):
            pipeline.settle()
    pipeline.land(records[emptied:])

    pipeline.start()
    ahead = pipeline.tables.by_topic[topic].position.offset
    pipeline.settle()

    cuts = [row.entry(str(NO_KEY.table)) for row in pipeline.ledger.rows()]
    assert any(a and b and a.offset < ahead < b.offset for a, b in pairwise(cuts))
    rows = sorted((row["x"], row["y"]) for row in pipeline.rows(NO_KEY))
    assert rows == [("1", "a"), ("2", "b"), ("3", "not emptied"), ("9", "z")]


def test_a_column_is_not_added_before_the_cut_that_has_its_events(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its events have landed with earlier ones, but the source may have changed in between."""
    topic = NO_KEY.table.topic(PREFIX)
    records = [dict(record) for record in landed_topics()]
    last = [i for i, r in enumerate(records) if r["topic"] == topic][-1]
    framed = base64.b64decode(records[last]["value"])
    wider = json.loads(SCHEMAS[int.from_bytes(framed[1:5])])
    before = next(field["type"] for field in wider["fields"] if field["name"] == "before")
    row = next(part for part in before if isinstance(part, dict))
    row["fields"].append({"name": "later", "type": ["null", "string"], "default": None})
    monkeypatch.setitem(SCHEMAS, 9999, json.dumps(wider))
    records[last]["value"] = _written(9999, _event(records[last]["value"]))
    pipeline = Pipeline(spark, tmp_path)

    def columns() -> list[str]:
        return store.read(spark, str(tmp_path / NO_KEY.table.name)).columns

    pipeline.land(records[: last + 1])  # without the end of the transaction
    pipeline.settle()
    assert pipeline.tables.by_topic[topic].position.offset > 0
    assert "later" not in columns()

    pipeline.land(records[last + 1 :])
    pipeline.settle()
    assert "later" in columns()


def _killed(_: Ledger, __: LedgerRow) -> None:
    raise KeyboardInterrupt


def test_a_value_set_earlier_in_the_batch_is_kept_by_an_update_without_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One update sets ``big``; the delete after it is replaced by an update without ``big``."""
    topic = TOASTY.table.topic(PREFIX)
    records = [dict(record) for record in landed_topics()]
    mine = [i for i, r in enumerate(records) if r["topic"] == topic]
    unchanged, _, deleted, _, moved, full = mine[1:7]
    after = _event(records[unchanged]["value"])["after"]
    row = {**_event(records[full]["value"])["after"], "id": 2}
    for place, parts in ((deleted, {"op": "u", "after": after}), (moved, {"after": row})):
        records[place] |= {"headers": [], "value": _with(records[place]["value"], **parts)}
    pipeline = Pipeline(spark, tmp_path)
    pipeline.land(records[:unchanged])
    pipeline.settle()
    [before] = pipeline.rows(TOASTY)
    assert before["big"] != "now small"

    pipeline.land(records[unchanged:])
    pipeline.settle()

    [updated] = [row for row in pipeline.rows(TOASTY) if row["id"] == "1"]
    assert updated == {**before, "n": "2", "big": "now small"}


def test_a_later_snapshot_stops_its_tables_and_no_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The offsets of its rows do not show when the rows were true (decision 0009).

    A repeated or a blocking snapshot has another LSN, and an incremental one has none. For a table
    that was empty at the first snapshot, it is the first with rows.
    """
    pipeline = Pipeline(spark, tmp_path)
    records = landed_topics()
    reads = {
        schema: next(r for r in records if r["topic"] == schema.table.topic(PREFIX))
        for schema in (ORDERS, NO_KEY, COMPOSITE)
    }
    pipeline.land([record for record in records if record != reads[COMPOSITE]])
    pipeline.settle()
    before = {schema: pipeline.rows(schema) for schema in reads}

    lsns = {ORDERS: 2**40, NO_KEY: None, COMPOSITE: 2**40}
    pipeline.land(
        [
            {**read, "offset": 100, "value": _with_lsn(read["value"], lsns[schema])}
            for schema, read in reads.items()
        ]
    )
    pipeline.settle()

    last = pipeline.ledger.last()
    assert last is not None
    stopped = {entry.table for entry in last.tables if entry.state == "stopped"}
    assert stopped == {str(schema.table) for schema in reads}
    assert {entry.state for entry in last.tables} == {"stopped", "streaming"}
    for schema, rows in before.items():
        assert sorted_rows(pipeline.rows(schema)) == sorted_rows(rows)

    pipeline.start()  # which replays the events before the cut

    assert {str(t.schema.table) for t in pipeline.stopped()} == stopped
    for schema, rows in before.items():
        assert sorted_rows(pipeline.rows(schema)) == sorted_rows(rows)


def _is_read(record: dict[str, Any]) -> bool:
    return record["value"] is not None and _op(record) == "r"


def _op(record: dict[str, Any]) -> str:
    return str(_event(record["value"])["op"])


def _event(value: str) -> dict[str, Any]:
    framed = base64.b64decode(value)
    schema = fastavro.parse_schema(json.loads(SCHEMAS[int.from_bytes(framed[1:5])]))
    event: Any = fastavro.schemaless_reader(io.BytesIO(framed[5:]), schema, None)
    return dict(event)


def _with_lsn(value: str, lsn: int | None) -> str:
    return _with(value, source={**_event(value)["source"], "lsn": lsn})


def _with(value: str, **parts: Any) -> str:  # noqa: ANN401 - parts of an event of any table
    """Return the event with some parts replaced, in the same schema."""
    number = int.from_bytes(base64.b64decode(value)[1:5])
    return _written(number, {**_event(value), **parts})


def _written(number: int, event: dict[str, Any]) -> str:
    """Return the event in this schema, with the registry's frame."""
    written = io.BytesIO()
    schema = fastavro.parse_schema(json.loads(SCHEMAS[number]))
    fastavro.schemaless_writer(written, schema, event)
    return base64.b64encode(bytes([0]) + number.to_bytes(4) + written.getvalue()).decode()
