"""The job rebuilds a table that was deleted, altered or made unreadable, and goes on."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import create_autospec

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.table_factory import TableFactory
from cdc.config import Config, Lake, Source
from cdc.events.values.sql_text import spark_delta
from cdc.kafka.broker import Broker
from cdc.lake.layout import ledger_path, log_path, readings_path
from cdc.lake.records.readings import Readings
from cdc.lake.table.positions import position
from cdc.land.query import Lander
from cdc.operations.desk.context import JobContext
from cdc.operations.desk.reporter import Reporter
from cdc.operations.replay.in_place import handler
from cdc.state import pipeline as pipelines
from cdc.state.endpoints import Endpoints
from cdc.state.operation import Operation, OperationState, Progress, TableResult
from tests.spark.recorded_pipeline import (
    COMPOSITE,
    NO_KEY,
    PREFIX,
    RECORDED,
    TABLES,
    TOASTY,
    Pipeline,
    assert_equal_to_source,
    landed_topics,
)
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.deep]

NOWHERE = Endpoints(source_url="", kafka=Broker(""), connect="", registry="")


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Pipeline:
    """Return a pipeline whose tables have everything that was recorded."""
    made = Pipeline(spark.newSession(), tmp_path, budget=5)
    records = landed_topics()
    for begin in range(0, len(records), 60):
        made.land(records[begin : begin + 60])
    made.settle()
    return made


def config_of(pipeline: Pipeline) -> Config:
    """Return a configuration that finds the pipeline's log and ledger."""
    config = Config(
        name=PREFIX,
        source=Source(tables=["public.*"]),
        lake=Lake(path=str(pipeline.root)),
        state_dir=pipeline.root / "state",
    )
    Path(log_path(config)).parent.mkdir(exist_ok=True)
    for mine, theirs in ((log_path(config), "log"), (ledger_path(config), "ledger")):
        Path(mine).symlink_to(pipeline.root / theirs)
    return config


@contextmanager
def rounds(pipeline: Pipeline) -> Iterator[None]:
    """Run rounds in a thread beside the operation's, as the job does."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(0.05):
            pipeline.freezer.between_rounds()
            pipeline.rounds.round()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def replay(pipeline: Pipeline, *tables: str) -> tuple[TableResult, ...]:
    config = config_of(pipeline)
    context = JobContext(
        pipeline=pipelines.Pipeline(config, NOWHERE),
        spark=pipeline.spark,
        tables=pipeline.tables.by_topic,
        freezer=pipeline.freezer,
        last_cut=lambda: pipeline.publisher.last,
        log=pipeline.epoch_log(),
        factory=TableFactory(
            ApplyContext(
                quarantine=pipeline.quarantine,
                placeholder=RECORDED["placeholder"],
                policy=config.job,
                schema_policy=config.source.schema_policy,
            )
        ),
        readings=Readings(readings_path(config)),
        lander=create_autospec(Lander, instance=True),  # nothing lands
    )
    operation = Operation(
        id="o", command="replay", tables=tables, line="", asked_by="", asked_at="", options={}
    )
    (config.state_dir / "operations").mkdir(parents=True)
    begun = Progress(id="o", state=OperationState.RUNNING)
    reporter = Reporter(config.state_dir, begun, threading.Event())
    with rounds(pipeline):
        handler(context)(operation, reporter)
        # The tables are thawed between two rounds.
        until(lambda: not any(table.frozen for table in pipeline.tables.by_topic.values()), 30)
    assert not (pipeline.root / "_wal2lake" / "aside" / "o").exists()
    return reporter.progress.results


def untouched(_spark: SparkSession, _path: str) -> None:
    pass


def deleted(_spark: SparkSession, path: str) -> None:
    shutil.rmtree(path)


def altered(spark: SparkSession, path: str) -> None:
    spark.newSession().sql(f"DELETE FROM {spark_delta(path)}").collect()


def without_files(_spark: SparkSession, path: str) -> None:
    for file in Path(path).glob("**/*.parquet"):
        if "_delta_log" not in file.parts:
            file.unlink()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (untouched, "it was equal"),
        (altered, "it was not equal: 2 more rows, 0 fewer"),
        (deleted, "could not be read"),
        (without_files, "could not be read"),
    ],
)
def test_a_damaged_table_is_replaced_by_its_rebuild(
    pipeline: Pipeline, damage: Callable[[SparkSession, str], None], said: str
) -> None:
    path = str(pipeline.root / TOASTY.table.name)
    before = position(path)
    damage(pipeline.spark, path)

    (result,) = replay(pipeline, str(TOASTY.table))

    assert said in result.note
    assert position(path) == before
    entry = pipeline.tables.by_topic[f"{PREFIX}.{TOASTY.table}"].entry(0, streaming=True)
    assert entry.delta_id == str(DeltaTable(path).metadata().id)
    assert_equal_to_source(pipeline)


def test_every_table_can_be_replayed_while_the_job_goes_on(pipeline: Pipeline) -> None:
    for schema in (NO_KEY, COMPOSITE):
        altered(pipeline.spark, str(pipeline.root / schema.table.name))

    results = replay(pipeline, *(str(schema.table) for schema in TABLES))

    assert [result.table for result in results] == [str(schema.table) for schema in TABLES]
    assert_equal_to_source(pipeline)
    assert all(table.following for table in pipeline.tables.by_topic.values())
    pipeline.start()
    pipeline.settle()
    assert_equal_to_source(pipeline)
