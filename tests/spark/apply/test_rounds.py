"""Land and apply on recorded events of a real connector: the tables hold what Postgres held."""

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


def test_tables_equal_the_source_after_one_landing(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Pipeline(spark, tmp_path)
    pipeline.land(landed_topics())

    pipeline.settle()

    assert_equal_to_source(pipeline)
    last = pipeline.ledger.last()
    assert last is not None
    assert {entry.state for entry in last.tables} == {"streaming"}


@pytest.mark.parametrize("size", [23])
def test_tables_equal_the_source_with_a_restart_between_any_two_landings(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(spark_plans, "FEW", 0)  # with generated code, as for many events
    pipeline = Pipeline(spark, tmp_path, budget=5)
    records = landed_topics()
    for begin in range(0, len(records), size):
        pipeline.land(records[begin : begin + size])
        pipeline.settle()
        pipeline.start()

    assert_equal_to_source(pipeline)
    lsns = [row.lsn for row in pipeline.ledger.rows() if row.lsn is not None]
    assert lsns == sorted(lsns)


@pytest.mark.deep
def test_a_table_is_rebuilt_from_the_log_also_where_a_landing_ends_inside_a_change_of_key(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A landing may end anywhere; what the second half leaves out is in the first half's row."""
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
def test_no_cut_is_beyond_rows_of_the_first_snapshot(
    spark: SparkSession, tmp_path: Path, landed: str
) -> None:
    """The query lands a share of every topic: markers come before the last rows of a large one."""
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


def test_a_table_of_which_the_snapshot_saw_nothing_is_not_called_right_before_its_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It may have been emptied under it; the place is taken once, and stands in the ledger."""
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
    """Of a job whose source says one of the places after the other."""
    root.mkdir()
    pipeline = Pipeline(spark, root, budget=1)
    pipeline.ends, places = ends_of(records), iter(ends)
    if ends:
        pipeline.wal_end = lambda: next(places)
    for begin in range(0, len(records), 12):
        pipeline.land(records[begin : begin + 12])
        pipeline.settle()
    return list(pipeline.ledger.rows())


def test_a_first_cut_of_the_stream_that_a_crash_interrupted_is_made_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the tables have tells that the snapshot was whole; Kafka is not asked again."""
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


def test_what_a_crash_kept_from_the_ledger_is_not_applied_again_with_what_came_after(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies between the last cut and the tables would count twice in one without a key."""
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
    found = sorted((row["x"], row["y"]) for row in pipeline.rows(NO_KEY))
    assert found == [("1", "a"), ("2", "b"), ("3", "not emptied"), ("9", "z")]


def test_a_column_of_events_beyond_the_cut_is_not_there_yet(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have landed with those before the cut; what the source did in between is not known."""
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


def test_a_value_stays_that_was_set_before_one_left_out_in_the_same_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One update sets ``big``; in place of the delete after it, another that does not carry it."""
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

    [found] = [row for row in pipeline.rows(TOASTY) if row["id"] == "1"]
    assert found == {**before, "n": "2", "big": "now small"}


def test_another_snapshot_stops_its_tables_and_no_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Where its rows stand in the topic says nothing of when they were true (decision 0009).

    A second first snapshot, or a blocking one, has another lsn; an incremental one has none; to a
    table that was empty at the first it is the first that has rows.
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

    found = pipeline.ledger.last()
    assert found is not None
    stopped = {entry.table for entry in found.tables if entry.state == "stopped"}
    assert stopped == {str(schema.table) for schema in reads}
    assert {entry.state for entry in found.tables} == {"stopped", "streaming"}
    for schema, rows in before.items():
        assert sorted_rows(pipeline.rows(schema)) == sorted_rows(rows)

    pipeline.start()  # which replays what lies before the cut

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
    """The event with other parts, written by the same schema."""
    number = int.from_bytes(base64.b64decode(value)[1:5])
    return _written(number, {**_event(value), **parts})


def _written(number: int, event: dict[str, Any]) -> str:
    """In the frame of the registry, by the schema of that number."""
    written = io.BytesIO()
    schema = fastavro.parse_schema(json.loads(SCHEMAS[number]))
    fastavro.schemaless_writer(written, schema, event)
    return base64.b64encode(bytes([0]) + number.to_bytes(4) + written.getvalue()).decode()
