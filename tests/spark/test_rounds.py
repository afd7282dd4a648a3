"""Land and apply on recorded events of a real connector: the tables hold what Postgres held."""

import base64
import io
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import DataFrame, SparkSession

from cdc.apply import effort, recovery
from cdc.apply.first_snapshot import FirstSnapshot
from cdc.apply.land import Lander, create_log
from cdc.apply.merge_plan import quoted
from cdc.apply.rounds import Applier
from cdc.apply.table import AppliedTable
from cdc.config import Job
from cdc.events.schema import Column, TableSchema, table_schema_from_avro
from cdc.lake import store
from cdc.lake.ledger import Ledger, LedgerRow
from cdc.lake.progress import LandedPosition, Position, landed_position, position
from cdc.lake.quarantine import Quarantine
from cdc.tables import STRUCTURE, TableId, TableMode

pytestmark = pytest.mark.spark

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "data" / "events" / "tables.json").read_text()
)
SCHEMAS = {int(number): schema for number, schema in RECORDED["schemas"].items()}
PREFIX = "wal2lake"
MARKERS = f"{PREFIX}.transaction"
NOTES = STRUCTURE.topic(PREFIX)


def _recorded_schema(name: str, key: tuple[str, ...], mode: TableMode) -> TableSchema:
    """As the first event of the table describes it."""
    topic = f"{PREFIX}.public.{name}"
    first = next(r for r in RECORDED["records"] if r["topic"] == topic and r["value"])
    number = int.from_bytes(base64.b64decode(first["value"])[1:5])
    return table_schema_from_avro(
        SCHEMAS[number], table=TableId("public", name), key=key, mode=mode
    )


ORDERS = _recorded_schema("orders", ("id",), TableMode.KEYED)
COMPOSITE = _recorded_schema("composite_key", ("a", "b"), TableMode.KEYED)
NO_KEY = _recorded_schema("no_key", (), TableMode.MULTISET)
TOASTY = _recorded_schema("toasty", ("id",), TableMode.KEYED)
TABLES = (ORDERS, COMPOSITE, NO_KEY, TOASTY)
EVENT_COLUMNS = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)


class Pipeline:
    """The job without its servers: events are handed to the landing function directly."""

    def __init__(self, spark: SparkSession, root: Path, *, budget: int = 1000) -> None:
        self.spark = spark
        self.root = root
        self.log = str(root / "log")
        self.ledger = Ledger(str(root / "ledger"))
        self.quarantine = Quarantine(str(root / "quarantine"))
        self.budget = budget
        self.ends: dict[str, int] = {}
        """What Kafka would say of the topics."""
        self.start()

    def start(self) -> None:
        """As after a restart: nothing is known but what the lake says."""
        landed = landed_position(self.log)
        if landed is None:
            landed = LandedPosition(epoch=1, landing=0, offsets={}, topic_ids={})
            create_log(self.spark, self.log, landed)
        self.applier = Applier(
            self.spark,
            {schema.table.topic(PREFIX): self._open(schema) for schema in TABLES},
            prefix=PREFIX,
            marker_topic=MARKERS,
            notes_topic=NOTES,
            log_path=self.log,
            ledger=self.ledger,
            schemas=lambda ids: {i: SCHEMAS[i] for i in ids if i in SCHEMAS},
            requests_dir=self.root / "requests",
            threads=2,
            epoch=None,
            first=FirstSnapshot(lambda: self.ends, marker_topic=MARKERS),
            budget=self.budget,
        )
        self.lander = Lander(self.spark, self.log, landed, self.applier.inbox.add, Job())
        self.applier.first.read = self._read
        recovery.catch_up(self.spark, self.log, self.applier)

    def _open(self, schema: TableSchema) -> AppliedTable:
        path, session = str(self.root / schema.table.name), self.spark.newSession()
        if position(path) is None:
            store.create(session, path, schema, Position(epoch=1, offset=-1))
        found = position(path)
        assert found is not None
        return AppliedTable(
            session=session,
            path=path,
            schema=store.read_schema(session, path, schema.table) or schema,
            position=found,
            quarantine=self.quarantine,
            placeholder=RECORDED["placeholder"],
            policy=Job(),
        )

    def land(self, records: list[dict[str, Any]]) -> None:
        self.lander.land(events(self.spark, records), 0)

    def _read(self) -> dict[str, int]:
        return {topic: last + 1 for topic, last in self.lander.position.offsets.items()}

    def settle(self) -> None:
        while self.applier.round():
            pass

    def stopped(self) -> list[AppliedTable]:
        return [table for table in self.applier.tables.values() if not table.following]

    def rows(self, schema: TableSchema) -> list[dict[str, str | None]]:
        frame = self.spark.read.format("delta").load(str(self.root / schema.table.name))
        texts = [f"{_text(column)} AS {column.name}" for column in _compared(schema)]
        return [row.asDict() for row in frame.selectExpr(*texts).collect()]


def events(spark: SparkSession, records: list[dict[str, Any]]) -> DataFrame:
    rows: list[tuple[Any, ...]] = [
        (
            _bytes(record["key"]),
            _bytes(record["value"]),
            record["topic"],
            record["partition"],
            record["offset"],
            datetime.fromtimestamp(record["timestamp"] / 1000, tz=UTC),
            [(name, base64.b64decode(data)) for name, data in record["headers"]],
        )
        for record in records
    ]
    return spark.createDataFrame(rows, EVENT_COLUMNS)


def _compared(schema: TableSchema) -> list[Column]:
    """Those whose text in Spark is that of Postgres, or can be made so in a word."""
    kept_otherwise = ("bigh",)  # hstore, as JSON
    return [
        column
        for column in schema.columns
        if not column.type.startswith("array") and column.name not in kept_otherwise
    ]


def _text(column: Column) -> str:
    name = quoted(column.name)
    if column.type == "binary":
        return f"concat('\\\\x', lower(hex({name})))"
    return f"CAST({name} AS string)"


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _landed_topics() -> list[dict[str, Any]]:
    """The records of our topics, in the order in which Kafka took them."""
    topics = {schema.table.topic(PREFIX) for schema in TABLES} | {MARKERS}
    mine = [record for record in RECORDED["records"] if record["topic"] in topics]
    return sorted(mine, key=lambda record: (record["timestamp"], record["offset"]))


def _sorted(rows: list[dict[str, str | None]]) -> list[list[tuple[str, str | None]]]:
    return sorted((sorted(row.items()) for row in rows), key=repr)


def _assert_equal_to_source(pipeline: Pipeline) -> None:
    for schema in TABLES:
        expected = [
            {column.name: row[column.name] for column in _compared(schema)}
            for row in RECORDED["expected"][schema.table.name]
        ]
        assert _sorted(pipeline.rows(schema)) == _sorted(expected), schema.table


def test_tables_equal_the_source_after_one_landing(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Pipeline(spark, tmp_path)
    pipeline.land(_landed_topics())

    pipeline.settle()

    _assert_equal_to_source(pipeline)
    last = pipeline.ledger.last()
    assert last is not None
    assert {entry.state for entry in last.tables} == {"streaming"}


@pytest.mark.parametrize("size", [23])
def test_tables_equal_the_source_with_a_restart_between_any_two_landings(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(effort, "FEW", 0)  # with generated code, as for many events
    pipeline = Pipeline(spark, tmp_path, budget=5)
    records = _landed_topics()
    for begin in range(0, len(records), size):
        pipeline.land(records[begin : begin + size])
        pipeline.settle()
        pipeline.start()

    _assert_equal_to_source(pipeline)
    lsns = [row.lsn for row in pipeline.ledger.rows() if row.lsn is not None]
    assert lsns == sorted(lsns)


@pytest.mark.deep
def test_a_table_is_rebuilt_from_the_log_also_where_a_landing_ends_inside_a_change_of_key(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A landing may end anywhere; what the second half leaves out is in the first half's row."""
    pipeline = Pipeline(spark, tmp_path, budget=1)
    topic = TOASTY.table.topic(PREFIX)
    records = _landed_topics()
    halves = [i for i, r in enumerate(records) if r["topic"] == topic and r["headers"]]
    first, tombstone, second = halves
    for begin, end in ((0, first + 1), (first + 1, tombstone + 1), (tombstone + 1, len(records))):
        pipeline.land(records[begin:end])
    pipeline.settle()
    shutil.rmtree(tmp_path / TOASTY.table.name)

    pipeline.start()

    assert first < tombstone < second
    _assert_equal_to_source(pipeline)
    assert pipeline.quarantine.rows() == []


@pytest.mark.parametrize("landed", ["one by one", "all at once"])
def test_no_cut_is_beyond_rows_of_the_first_snapshot(
    spark: SparkSession, tmp_path: Path, landed: str
) -> None:
    """The query lands a share of every topic: markers come before the last rows of a large one."""
    topic = ORDERS.table.topic(PREFIX)
    records = _landed_topics()
    mine = [record for record in records if record["topic"] == topic]
    pipeline = Pipeline(spark, tmp_path, budget=1)
    pipeline.ends = _ends(records)

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
    _assert_equal_to_source(pipeline)


def test_a_first_cut_of_the_stream_that_a_crash_interrupted_is_made_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the tables have tells that the snapshot was whole; Kafka is not asked again."""
    records = _landed_topics()
    pipeline = Pipeline(spark, tmp_path)
    pipeline.ends = _ends(records)
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
    _assert_equal_to_source(pipeline)


def test_another_snapshot_stops_its_tables_and_no_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Where its rows stand in the topic says nothing of when they were true (decision 0009).

    A second first snapshot, or a blocking one, has another lsn; an incremental one has none; to a
    table that was empty at the first it is the first that has rows.
    """
    pipeline = Pipeline(spark, tmp_path)
    records = _landed_topics()
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
        assert _sorted(pipeline.rows(schema)) == _sorted(rows)

    pipeline.start()  # which replays what lies before the cut

    assert {str(t.schema.table) for t in pipeline.stopped()} == stopped
    for schema, rows in before.items():
        assert _sorted(pipeline.rows(schema)) == _sorted(rows)


def _ends(records: list[dict[str, Any]]) -> dict[str, int]:
    """Exclusive, by topic."""
    found: dict[str, int] = {}
    for record in records:
        found[record["topic"]] = max(found.get(record["topic"], 0), record["offset"] + 1)
    return found


def _is_read(record: dict[str, Any]) -> bool:
    return record["value"] is not None and _event(record["value"])["op"] == "r"


def _event(value: str) -> dict[str, Any]:
    framed = base64.b64decode(value)
    schema = fastavro.parse_schema(json.loads(SCHEMAS[int.from_bytes(framed[1:5])]))
    event: Any = fastavro.schemaless_reader(io.BytesIO(framed[5:]), schema, None)
    return dict(event)


def _with_lsn(value: str, lsn: int | None) -> str:
    framed, event = base64.b64decode(value), _event(value)
    schema = fastavro.parse_schema(json.loads(SCHEMAS[int.from_bytes(framed[1:5])]))
    event["source"]["lsn"] = lsn
    written = io.BytesIO()
    fastavro.schemaless_writer(written, schema, event)
    return base64.b64encode(framed[:5] + written.getvalue()).decode()
