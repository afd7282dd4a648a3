"""Run the job without servers, on recorded events of a real connector.

The recording also has the source's rows at its end, in Postgres's own text.
"""

import base64
import json
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import DataFrame, SparkSession

from cdc.apply.epoch_log import EpochLog
from cdc.apply.local.driver_commit import DriverSettings
from cdc.apply.rounds import recovery
from cdc.apply.rounds.applied_tables import AppliedTables
from cdc.apply.rounds.cut_finder import CutFinder
from cdc.apply.rounds.cut_requests import CutRequests
from cdc.apply.rounds.first_snapshot import FirstSnapshot
from cdc.apply.rounds.last_cut import Topics
from cdc.apply.rounds.publisher import Publisher
from cdc.apply.rounds.recovery import Recovery
from cdc.apply.rounds.rounds import RoundChecks, Rounds, stuck_transactions
from cdc.apply.rounds.table_freezer import TableFreezer
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.table_factory import TableFactory
from cdc.config import Job
from cdc.events.schema import Column, TableSchema, table_schema_from_avro
from cdc.lake.create.table import create
from cdc.lake.records.epochs import Epoch
from cdc.lake.records.ledger import Ledger
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table.positions import LandedPosition, Position, landed_position, position
from cdc.land.inbox import Inbox
from cdc.land.log_table import create_log
from cdc.land.micro_batches import MicroBatch
from cdc.land.query import Lander, LandingHooks
from cdc.land.small_batches import SmallBatches
from cdc.observe.recent_freshness import RecentFreshness
from cdc.observe.stage_times import StageTimes
from cdc.state.request_reader import RequestReader
from cdc.tables import STRUCTURE, TableId, TableMode
from tests.local_spark import frame_of

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "data" / "events" / "tables.json").read_text()
)
SCHEMAS = {int(number): schema for number, schema in RECORDED["schemas"].items()}
PREFIX = "wal2lake"
MARKERS = f"{PREFIX}.transaction"
NOTES = STRUCTURE.topic(PREFIX)


def _recorded_schema(name: str, key: tuple[str, ...], mode: TableMode) -> TableSchema:
    """Return the schema in the first recorded event of the table."""
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


def schemas(ids: Iterable[int]) -> dict[int, str]:
    """Return recorded writer schemas, as a registry would."""
    return {i: SCHEMAS[i] for i in ids if i in SCHEMAS}


class Pipeline:
    """The job without servers: records are passed directly to the landing function."""

    epoch: Epoch | None = None

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        *,
        budget: int = 1000,
        patience: float = 60,
        in_memory: bool = True,
        few: int = 0,
    ) -> None:
        self.in_memory = in_memory
        self.few = few
        self.spark = spark
        self.root = root
        self.log = str(root / "log")
        self.ledger = Ledger(str(root / "ledger"))
        self.quarantine = Quarantine(str(root / "quarantine"))
        self.budget = budget
        self.stages = StageTimes()
        self.patience = patience
        self.ends: dict[str, int] = {}
        """The ends of the topics, as Kafka would report them."""
        self.wal_end: Callable[[], int] = lambda: 0
        """Return the end of the source's WAL."""
        self.start()

    def start(self) -> None:
        """Start as after a restart, with nothing but the lake."""
        landed = landed_position(self.log)
        if landed is None:
            landed = LandedPosition(epoch=1, landing=0, offsets={}, topic_ids={})
            create_log(self.spark, self.log, landed)
        opened = {schema.table.topic(PREFIX): self.opened(schema) for schema in TABLES}
        topics = Topics(prefix=PREFIX, markers=MARKERS, notes=NOTES)
        last = recovery.last_cut_at_start(
            self.log, self.ledger.last(), self.epoch, topics=topics, tables=opened
        )
        self.inbox = Inbox(landings=recovery.unpublished_landings(self.log, last))
        self.lander = Lander(
            self.spark,
            self.log,
            landed,
            Job(),
            notes_topic=NOTES,
            hooks=LandingHooks(landed=self.inbox.add, look=lambda _: None),
        )
        self.freezer = TableFreezer(opened)
        self.tables = AppliedTables(opened, notes_topic=NOTES, threads=2)
        self.publisher = Publisher(
            self.ledger,
            last,
            topics=topics,
            tables=self.tables,
            inbox=self.inbox,
            freezer=self.freezer,
            wal_end=self._wal_end,
            recent=RecentFreshness(time.monotonic),
            stages=self.stages,
        )
        finder = CutFinder(
            self.spark,
            self.log,
            topics=topics,
            tables=self.tables,
            inbox=self.inbox,
            first=FirstSnapshot(
                lambda: self.ends,
                self._read,
                marker_topic=MARKERS,
                applied=last.row.lsn is not None,
            ),
            schemas_of=schemas,
            stages=self.stages,
            few=self.few,
        )
        self.rounds = Rounds(
            finder,
            self.tables,
            self.publisher,
            inbox=self.inbox,
            requests=CutRequests(RequestReader(self.root / "requests")),
            checks=RoundChecks(
                stuck_transactions(self.patience),
                source=lambda _: None,
                idle_source=lambda _: None,
            ),
            budget=self.budget,
        )
        self.recovery = Recovery(
            log=self.epoch_log(),
            tables=self.tables,
            freezer=self.freezer,
            last_cut=lambda: self.publisher.last,
        )
        self.recovery.catch_up()

    def epoch_log(self) -> EpochLog:
        return EpochLog(
            spark=self.spark,
            path=self.log,
            notes_topic=NOTES,
            schemas_of=schemas,
            budget=self.budget,
            epoch=self.epoch,
            small=SmallBatches(Job().local_events if self.in_memory else 0),
        )

    def opened(self, schema: TableSchema) -> AppliedTable:
        """Open the table as the job does at its start; create it if there is none."""
        path, session = str(self.root / schema.table.name), self.spark.newSession()
        if position(path) is None:
            create(session, path, schema, Position(epoch=1, offset=-1))
        found = position(path)
        assert found is not None
        placeholder = RECORDED["placeholder"]
        driver = DriverSettings(
            index_directory=self.root / "index",
            index_bytes=1 << 20,
            stages=self.stages,
            executor=ThreadPoolExecutor(1),
            check_directory=self.root / "check",
        )
        tables = TableFactory(
            ApplyContext(
                quarantine=self.quarantine, placeholder=placeholder, policy=Job(), driver=driver
            )
        )
        return tables.stored(session, path, found, schema)

    def land(self, records: list[dict[str, Any]]) -> None:
        """Land the records in one landing; the driver applies them if ``in_memory``."""
        self.lander.land(events(self.spark, records), small(records) if self.in_memory else None)

    def _wal_end(self) -> int:
        return self.wal_end()

    def _read(self) -> dict[str, int]:
        return {topic: last + 1 for topic, last in self.lander.position.offsets.items()}

    def settle(self) -> None:
        """Run rounds until one has nothing to do."""
        while self.rounds.round():
            pass

    def stopped(self) -> list[AppliedTable]:
        """Return the tables that do not follow the stream."""
        return [table for table in self.tables.by_topic.values() if not table.following]

    def rows(self, schema: TableSchema) -> list[dict[str, str | None]]:
        """Return the lake's rows as Postgres's texts, in the compared columns, by delta-rs."""
        names = ", ".join(f'"{column.name}"' for column in compared(schema))
        rows = read_rows(str(self.root / schema.table.name), f"SELECT {names} FROM t")
        return [{name: _text(value) for name, value in row.items()} for row in rows]


def events(spark: SparkSession, records: list[dict[str, Any]]) -> DataFrame:
    """Return records as Spark reads them from Kafka."""
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
    return frame_of(spark, rows, EVENT_COLUMNS)


def compared(schema: TableSchema) -> list[Column]:
    """Return the columns whose values can be compared with Postgres's texts."""
    other_text = ("bigh",)  # hstore, as JSON
    return [
        column
        for column in schema.columns
        if not column.type.startswith("array") and column.name not in other_text
    ]


def read_rows(path: str, query: str) -> list[dict[str, Any]]:
    """Return the rows of a query over ``t``, the Delta table at ``path``, by delta-rs."""
    answer = QueryBuilder().register("t", DeltaTable(path)).execute(query).read_all()
    rows: list[dict[str, Any]] = pa.table(answer).to_pylist()
    return rows


def _text(value: Any) -> str | None:  # noqa: ANN401 - an integer, a text or bytes
    if value is None:
        return None
    assert isinstance(value, int | str | bytes)
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def small(records: list[dict[str, Any]]) -> MicroBatch:
    """Return a micro-batch of so many records."""
    return MicroBatch(ranges={"t": range(len(records))}, exact=False)


def landed_topics() -> list[dict[str, Any]]:
    """Return the records of our topics, in the order in which Kafka accepted them."""
    topics = {schema.table.topic(PREFIX) for schema in TABLES} | {MARKERS}
    mine = [record for record in RECORDED["records"] if record["topic"] in topics]
    return sorted(mine, key=lambda record: (record["timestamp"], record["offset"]))


def sorted_rows(rows: list[dict[str, str | None]]) -> list[list[tuple[str, str | None]]]:
    return sorted((sorted(row.items()) for row in rows), key=repr)


def assert_equal_to_source(pipeline: Pipeline) -> None:
    """Assert that every table has the rows of the source at the recording's end."""
    for schema in TABLES:
        expected = [
            {column.name: row[column.name] for column in compared(schema)}
            for row in RECORDED["expected"][schema.table.name]
        ]
        assert sorted_rows(pipeline.rows(schema)) == sorted_rows(expected), schema.table


def ends_of(records: list[dict[str, Any]]) -> dict[str, int]:
    """Return the end of each topic: the offset after its last record."""
    ends: dict[str, int] = {}
    for record in records:
        ends[record["topic"]] = max(ends.get(record["topic"], 0), record["offset"] + 1)
    return ends
