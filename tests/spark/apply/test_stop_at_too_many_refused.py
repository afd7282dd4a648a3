"""A batch records its refused events before it commits; too many of them stop the table."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from cdc.apply.changes.reasons import NO_FRAME, NO_ROW_TO_KEEP_FROM
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.batch import Batch
from cdc.config import Job
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema, table_schema_from_avro
from cdc.lake.create.table import create
from cdc.lake.records.quarantine import EventState, Quarantine, RefusedEvent
from cdc.lake.table import positions, store
from cdc.lake.table.merge_plan import REASON, UNRESOLVED
from cdc.lake.table.positions import Position
from cdc.operations.resnapshot.read import Staged, refused_events
from cdc.tables import TableId, TableMode
from tests.events.recorded import LOG_COLUMNS, Message, recording, table_topic
from tests.events.source import SCHEMA_ID, TABLE, TOPIC, Source
from tests.local_spark import frame_of
from tests.spark.recorded_pipeline import read_rows

pytestmark = pytest.mark.spark

PLACEHOLDER = "no-value-of-the-source"
SCHEMAS = {SCHEMA_ID: recording("tables").schemas[SCHEMA_ID]}
TOASTY = table_schema_from_avro(SCHEMAS[SCHEMA_ID], table=TABLE, key=("id",), mode=TableMode.KEYED)
BEGIN = Position(epoch=3, offset=-1)


class Table:
    """A table of the lake and its quarantine, to which batches are applied as by the job."""

    def __init__(self, spark: SparkSession, root: Path, schema: TableSchema = TOASTY) -> None:
        self.spark, self.path, self.schema = spark, str(root / "t"), schema
        self.quarantine = Quarantine(str(root / "quarantine"))
        create(spark, self.path, schema, BEGIN)

    def apply(self, messages: Sequence[Message], policy: Job | None = None) -> Position:
        at = positions.position(self.path)
        assert at is not None
        batch = Batch(
            session=self.spark,
            path=self.path,
            schema=self.schema,
            position=at,
            context=self.context(policy or Job()),
        )
        return batch.commit(self.log(messages), messages[-1].offset, SCHEMAS)

    def context(self, policy: Job) -> ApplyContext:
        return ApplyContext(quarantine=self.quarantine, placeholder=PLACEHOLDER, policy=policy)

    def log(self, messages: Sequence[Message]) -> DataFrame:
        rows = frame_of(self.spark, [m.row() for m in messages], LOG_COLUMNS)
        return rows.withColumn("partition", F.lit(0))

    def rows(self) -> dict[int, dict[str, Any]]:
        names = ", ".join(f'"{name}"' for name in self.schema.names)
        return {row["id"]: row for row in read_rows(self.path, f"SELECT {names} FROM t")}

    def recorded(self) -> dict[int, str]:
        return {event.offset: event.reason for event in self.quarantine.rows(str(TABLE))}


def inserts(count: int) -> Source:
    source = Source(placeholder=PLACEHOLDER)
    for key in range(count):
        source.insert(key, key, key)
    return source


def spoiled(messages: Sequence[Message], *offsets: int) -> list[Message]:
    return [replace(m, value=b"garbage") if m.offset in offsets else m for m in messages]


@pytest.mark.parametrize(
    ("bad", "policy", "detail"),
    [
        ((3, 4, 5, 6), Job(quarantine_limit_run=3, quarantine_limit_share=1), "4 of them in a row"),
        ((1, 4, 7, 9), Job(quarantine_limit_run=3, quarantine_limit_share=0.39), "(40.0%)"),
    ],
)
def test_too_many_refused_events_stop_the_table_before_anything_is_written(
    spark: SparkSession, tmp_path: Path, bad: tuple[int, ...], policy: Job, detail: str
) -> None:
    table = Table(spark, tmp_path)

    with pytest.raises(CdcError) as raised:
        table.apply(spoiled(inserts(10).messages(), *bad), policy)

    assert raised.value.kind is ErrorKind.TABLE_STOPPED
    assert raised.value.message.startswith("4 of 10 events of a batch")
    assert detail in raised.value.message
    assert raised.value.message.endswith(f"the first at offset {bad[0]}: {NO_FRAME}")
    assert f"wal2lake quarantine list {TABLE}" in raised.value.remedy
    assert table.quarantine.rows() == []
    assert positions.position(table.path) == BEGIN
    assert table.rows() == {}


def test_as_many_refused_events_between_good_ones_are_put_into_quarantine(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, source = Table(spark, tmp_path), inserts(10)
    policy = Job(quarantine_limit_run=3, quarantine_limit_share=0.4)

    after = table.apply(spoiled(source.messages(), 1, 2, 4, 5), policy)

    assert (after.refused, after.rows_applied, after.offset) == (4, 6, 9)
    assert table.recorded() == dict.fromkeys((1, 2, 4, 5), NO_FRAME)
    assert table.rows() == {k: row for k, row in source.rows.items() if k not in {1, 2, 4, 5}}


def test_a_refused_event_is_recorded_with_its_origin(spark: SparkSession, tmp_path: Path) -> None:
    key = recording("tables").of(table_topic("toasty"))[0].key
    table, message = Table(spark, tmp_path), inserts(1).messages()[0]
    bad = replace(message, value=b"garbage", key=key, headers=(("h", b"\x00\xff"),))

    table.apply([bad])

    [event] = table.quarantine.rows()
    assert (event.table, event.topic, event.offset) == (str(TABLE), TOPIC, 0)
    assert (event.key, event.value, event.headers) == (key, b"garbage", (("h", b"\x00\xff"),))
    assert event.key_schema_id == int.from_bytes((key or b"")[1:5])
    assert (event.epoch, event.state) == (BEGIN.epoch, EventState.OPEN)


def test_a_repeated_batch_counts_its_open_refused_events_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A crash after the quarantine's commit repeats the batch; meanwhile an event was discarded."""
    table, messages = Table(spark, tmp_path), spoiled(inserts(4).messages(), 1, 3)
    assert table.apply(messages).refused == 2
    position = positions.position(table.path)
    assert position is not None
    first = table.quarantine.rows()[:1]
    table.quarantine.settle(
        first, state=EventState.DISCARDED, by="me", note="junk", at=datetime.now(UTC)
    )

    again = table.apply(messages)

    assert again.refused == 1
    assert [e.state for e in table.quarantine.rows()] == [EventState.DISCARDED, EventState.OPEN]


def test_refused_events_are_collected_a_few_at_a_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many events a batch refuses, the driver never has all their values in memory."""
    monkeypatch.setattr("cdc.apply.table.quarantine_writer.REFUSED_BYTES", 20_000)
    table = Table(spark, tmp_path)
    sizes_added: list[list[int]] = []
    add = table.quarantine.add

    def note_sizes(events: Sequence[RefusedEvent]) -> None:
        sizes_added.append([len(event.value or b"") for event in events])
        add(events)

    monkeypatch.setattr(table.quarantine, "add", note_sizes)
    messages = [replace(m, value=b"x" * 3000) for m in inserts(40).messages()]
    messages[7] = replace(messages[7], value=b"y" * 50_000)

    after = table.apply(messages)

    assert after.refused == 40
    assert sorted(table.recorded()) == list(range(40))
    assert {event.value for event in table.quarantine.rows()} == {m.value for m in messages}
    assert sum(map(len, sizes_added)) == 40
    assert max(sum(sizes) for sizes in sizes_added) <= 50_000 + 20_000


def test_only_the_keys_of_refused_rows_of_a_reading_are_collected(spark: SparkSession) -> None:
    """The other values of the rows are not even computed."""
    rows = spark.range(3).selectExpr(
        "id", "raise_error('a value is taken') AS large", f"'why' AS {REASON}"
    )
    staged = Staged(rows=rows, refused=rows, part=None, rows_read=3)
    described: Any = SimpleNamespace(schema=TOASTY)

    refused = refused_events(staged, described, TOPIC, 1)

    assert [(event.key, event.reason) for event in refused] == [
        (b'{"id": "0"}', "why"),
        (b'{"id": "1"}', "why"),
        (b'{"id": "2"}', "why"),
    ]


def batches_with_a_lost_row(source: Source) -> tuple[list[Message], list[Message]]:
    """Return two batches; the second has a garbage event, and an update of a missing row."""
    source.insert(1, 1, 1)
    source.insert(2, 2, 2)
    source.update(1, 3, {})
    source.update(2, 3, {})
    source.insert(5, 5, 5)
    messages = source.messages()
    return messages[1:2], spoiled(messages[2:], 4)


def test_events_that_the_merge_refuses_count_before_anything_is_recorded(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, source = Table(spark, tmp_path), Source(placeholder=PLACEHOLDER)
    first, second = batches_with_a_lost_row(source)
    before = table.apply(first)

    with pytest.raises(CdcError, match="2 of 3 events"):
        table.apply(second, Job(quarantine_limit_run=1))

    assert table.quarantine.rows() == []
    assert positions.position(table.path) == before
    after = table.apply(second)
    assert table.recorded() == {2: NO_ROW_TO_KEEP_FROM, 4: NO_FRAME}
    assert (after.refused, after.rows_applied) == (2, 2)
    assert table.rows() == {2: source.rows[2]}


class _JavaError(Py4JJavaError):  # type: ignore[misc] # it is untyped
    """Stands for a Py4JJavaError, without a Java object."""

    def __init__(self, text: str) -> None:
        Exception.__init__(self, text)

    def __str__(self) -> str:
        return f"An error occurred while calling o1.execute.\nCaused by: {self.args[0]}"


@pytest.mark.parametrize("kind", [None, PySparkException, _JavaError])
def test_a_merge_that_fails_at_a_missing_row_is_repeated_without_it(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Exception] | None,
) -> None:
    """Try each form in which the failure may arrive; None means the engine's own error."""
    table, source = Table(spark, tmp_path), Source(placeholder=PLACEHOLDER)
    first, second = batches_with_a_lost_row(source)
    table.apply(first)
    merge, calls = store.merge, []

    def failing(*arguments: Any) -> None:  # noqa: ANN401
        calls.append(arguments)
        if kind is not None and len(calls) == 1:
            raise kind(UNRESOLVED)
        merge(*arguments)

    monkeypatch.setattr(store, "merge", failing)
    after = table.apply(second[:2])

    assert len(calls) == 2
    assert table.recorded() == {2: NO_ROW_TO_KEEP_FROM}
    assert (after.refused, table.rows()) == (1, {2: source.rows[2]})


def test_another_failure_of_a_merge_is_raised(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table(spark, tmp_path)
    first, second = batches_with_a_lost_row(Source(placeholder=PLACEHOLDER))
    table.apply(first)

    def failing(*_arguments: Any) -> None:  # noqa: ANN401
        raise _JavaError("no space left")

    monkeypatch.setattr(store, "merge", failing)
    with pytest.raises(Py4JJavaError, match="no space left"):
        table.apply(second)


def test_a_delete_of_a_missing_copy_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """The table has no key, and does not have the copy that is deleted."""
    no_key = TableId("public", "no_key")
    number = 131
    text = recording("tables").schemas[number]
    schema = table_schema_from_avro(text, table=no_key, key=(), mode=TableMode.MULTISET)
    table = Table(spark, tmp_path, schema)
    recorded = [m for m in recording("tables").of(table_topic("no_key")) if m.value is not None]
    gone = next(m for m in recorded if (recording("tables").decoded(m.value) or {})["op"] == "d")
    log = table.log([gone])
    policy = Job(quarantine_limit_run=1)
    batch = Batch(
        session=spark,
        path=table.path,
        schema=schema,
        position=BEGIN,
        context=table.context(policy),
    )

    after = batch.commit(log, gone.offset, {number: text})

    assert (after.refused, after.rows_applied) == (1, 0)
    assert table.quarantine.open_count(str(no_key)) == 1
