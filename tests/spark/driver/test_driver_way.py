"""Small batches are applied by the driver, others by Spark: the rows are those of the source."""

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdc.apply.local.driver_commit import DriverSettings
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.event_applier import Stretch
from cdc.apply.table.table_content import TableContent
from cdc.apply.table.table_factory import TableFactory
from cdc.config import Job
from cdc.events.envelope import change_event
from cdc.events.fold import fold_multiset
from cdc.events.schema import TableSchema
from cdc.lake.key_index.file_index import Rows
from cdc.lake.key_index.places import Places
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table.positions import Position, position
from cdc.land.log_rows import LogRows
from cdc.observe.stage_times import StageTimes
from cdc.state.pace import DRIVER
from cdc.tables import TableMode
from tests.events.recorded import LOG_COLUMNS, Message, recording
from tests.events.source import LARGE, SCHEMA_ID, Source, act, legal_ends
from tests.local_spark import frame_of
from tests.spark.apply.test_apply_is_fold import PLACEHOLDER, TOASTY
from tests.spark.lake.test_names import by_delta_rs
from tests.unit.apply.local.test_local_is_fold import NO_KEY_SCHEMAS, no_key, without_key

pytestmark = pytest.mark.spark

SCHEMAS = {SCHEMA_ID: recording("tables").schemas[SCHEMA_ID]}


class Driven:
    """A table of the lake whose small batches the driver applies."""

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        schema: TableSchema,
        **job: Any,  # noqa: ANN401 - settings of any type
    ) -> None:
        self.spark, self.root = spark, root
        self.executor = ThreadPoolExecutor(1)
        self.ways: Counter[str] = Counter()
        content = TableContent(schema=schema, position=Position(epoch=1, offset=-1))
        self.table = self.factory(**job).created(spark.newSession(), str(root / "t"), content)

    def factory(self, **job: Any) -> TableFactory:  # noqa: ANN401 - settings of any type
        quarantine, policy = Quarantine(str(self.root / "quarantine")), Job(**job)
        driver = DriverSettings(
            index_directory=self.root / "index",
            index_bytes=1 << 20,
            stages=StageTimes(),
            executor=self.executor,
            check_directory=self.root / "check",
        )
        return TableFactory(
            ApplyContext(
                quarantine=quarantine, placeholder=PLACEHOLDER, policy=policy, driver=driver
            )
        )

    def reopen(self, **job: Any) -> None:  # noqa: ANN401 - settings of any type
        """Open the table as a restarted job does."""
        path, schema = self.table.path, self.table.schema
        at = position(path)
        assert at is not None
        self.table = self.factory(**job).stored(self.spark.newSession(), path, at, schema)

    def apply(self, messages: Sequence[Message], schemas: Mapping[int, str] = SCHEMAS) -> None:
        """Apply messages that have just landed."""
        self.table.apply(stretch(self.spark, messages, schemas))
        assert not self.table.reason
        self.ways[self.table.way] += 1

    def rows(self) -> dict[int, dict[str, Any]]:
        """Return the rows by id, read by Spark and by delta-rs."""
        names = self.table.schema.names
        found = self.spark.read.format("delta").load(self.table.path).select(*names).toArrow()
        by_spark = {row["id"]: row for row in found.to_pylist()}
        other = {row["id"]: row for row in by_delta_rs(self.table.path, names)}
        assert by_spark == other
        assert found.num_rows == len(by_spark)
        return by_spark


def stretch(
    spark: SparkSession, messages: Sequence[Message], schemas: Mapping[int, str]
) -> Stretch:
    frame = frame_of(spark, [m.row() for m in messages], LOG_COLUMNS)
    rows = LogRows(lambda: frame, events_of(messages))
    return Stretch(rows=rows, topic=messages[-1].topic, upto=messages[-1].offset, schemas=schemas)


def events_of(messages: Sequence[Message]) -> pa.Table:
    """Return messages as they are kept in memory, with the columns of the log."""
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    columns = list(zip(*(m.row() for m in messages), strict=True))
    headers = [[{"key": k, "value": v} for k, v in listed] for listed in columns[4]]
    size = len(messages)
    return pa.table(
        {
            "topic": pa.array(columns[0], pa.string()),
            "partition": pa.array([0] * size, pa.int32()),
            "offset": pa.array(columns[1], pa.int64()),
            "key": pa.array(columns[2], pa.binary()),
            "value": pa.array(columns[3], pa.binary()),
            "headers": pa.array(headers, pa.list_(header)),
            "key_schema_id": pa.array(columns[5], pa.int32()),
            "value_schema_id": pa.array(columns[6], pa.int32()),
        }
    )


def test_the_rows_are_those_of_the_source_however_batches_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Also after restarts, a truncate, and batches that Spark applies in between."""
    random, source = Random(28), Source(placeholder=PLACEHOLDER)
    driven = Driven(spark, tmp_path, TOASTY)
    for turn in range(14):
        begin = len(source.log)
        if turn == 8:
            source.truncate()
        for _ in range(random.choice([1, 3, 60])):
            act(source, random, range(40))
        messages = source.messages()
        inside = random.choices(range(begin, len(messages)), k=2)
        places = {begin, len(messages), *legal_ends(source, inside)}
        for first, end in pairwise(sorted(place for place in places if place >= begin)):
            driven.apply(messages[first:end])
        assert driven.rows() == source.rows
        if turn in {3, 6, 8}:  # Spark applies turns 7 and 8
            driven.reopen(local_events=0 if turn == 6 else 20_000)

    assert {way.split(":")[0] for way in driven.ways} == {DRIVER, "spark"}
    assert all(way == DRIVER or way.endswith("events") for way in driven.ways)
    assert driven.table.position.offset == messages[-1].offset


def test_copies_of_rows_without_a_key_are_those_of_the_source(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Also after a batch that Spark applies in between."""
    messages, schema = without_key(Random(28), 160), no_key(TableMode.MULTISET)
    driven = Driven(spark, tmp_path, schema)
    for begin in range(0, 160, 20):
        driven.apply(messages[begin : begin + 20], NO_KEY_SCHEMAS)
        driven.reopen(local_events=0 if begin == 60 else 20_000)

    recorded = recording("tables")
    events = [change_event(m.topic, m.offset, recorded.decoded(m.value) or {}) for m in messages]
    rows = by_delta_rs(driven.table.path, schema.names)
    assert Counter(tuple(row.items()) for row in rows) == fold_multiset(events)
    assert driven.ways == {DRIVER: 7, "spark: 20 events": 1}


def test_batches_are_applied_both_ways_and_compared(spark: SparkSession, tmp_path: Path) -> None:
    random, source = Random(29), Source(placeholder=PLACEHOLDER)
    driven = Driven(spark, tmp_path, TOASTY, cross_check=1)
    for key in range(30):
        source.insert(key, key, 1)
    driven.apply(source.messages())
    begin = len(source.log)
    for key in range(5, 15):
        source.update(key, 7, dict.fromkeys(LARGE, 2)) if random.random() < 0.6 else source.delete(
            key
        )
    driven.apply(source.messages()[begin:])

    assert driven.ways == {DRIVER: 2}
    assert driven.rows() == source.rows
    assert not list((tmp_path / "check").rglob("*.json"))


def test_a_difference_between_the_two_ways_stops_the_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver is made to leave a replaced row where it was: a row number is off by one."""
    source = Source(placeholder=PLACEHOLDER)
    driven = Driven(spark, tmp_path, TOASTY, cross_check=2)
    for key in range(9):
        source.insert(key, key, 1)
    first = source.messages()
    driven.apply(first[:5])
    driven.apply(first[5:])
    source.update(3, 7, dict.fromkeys(LARGE, 2))
    right = Places.rows_by_file

    def wrong(self: Places) -> dict[str, Rows]:
        return {path: rows - 1 for path, rows in right(self).items()}

    monkeypatch.setattr(Places, "rows_by_file", wrong)

    driven.table.apply(stretch(spark, source.messages()[9:], SCHEMAS))

    assert driven.table.stopped
    assert "differ in the rows that are left" in driven.table.reason
    kept = spark.read.format("delta").load(str(tmp_path / "check" / "public.toasty" / "by_spark"))
    assert sorted(row["id"] for row in kept.collect()) == list(range(9))
