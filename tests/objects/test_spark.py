"""Spark's commits into an object store: put once, known to have won, never behind another's."""

from collections.abc import Iterator

import pytest
from deltalake import DeltaTable
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc.config import Config, Lake, Source, Spark
from cdc.lake.files.store_of import store_of
from cdc.lake.session import build, end, held_for
from cdc.lake.table.entry_file import entry_name
from cdc.stack.artifacts.install import install
from cdc.stack.artifacts.lock_file import OBJECTS, spark_jars
from tests.local_spark import QUICK
from tests.objects.faults import Fault, first
from tests.objects.server import ObjectServer

pytestmark = pytest.mark.spark

FOREVER = 1e6


@pytest.fixture(scope="module")
def spark(
    running: ObjectServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    install([OBJECTS])
    if (left := SparkSession.getActiveSession()) is not None:
        end(left)  # of other tests in this process: its JVM has no jars for an object store
    config = Config(
        source=Source(tables=["shop.*"]),
        lake=Lake(path=running.lake()),
        spark=Spark(master="local[2]", driver_memory="1500m", conf=QUICK),
        state_dir=tmp_path_factory.mktemp("state"),
    )
    session = build(config, spark_jars(objects=True))
    yield session
    end(session)


@pytest.fixture
def table(spark: SparkSession, lake: str) -> str:
    held_for(spark, FOREVER)
    path = f"{lake}/shop/t"
    append(spark, path)
    return path


def append(spark: SparkSession, path: str) -> None:
    spark.range(10).coalesce(1).write.format("delta").mode("append").save(path)


def test_a_lost_answer_is_a_commit_made_once(
    spark: SparkSession, table: str, objects: ObjectServer
) -> None:
    for version, fault in enumerate((Fault.LOST, Fault.LATE_BUSY, Fault.BUSY), 1):
        objects.faults.follow(first(1, fault, "PUT", entry_name(version)))
        append(spark, table)

    assert objects.faults.met == [Fault.LOST, Fault.LATE_BUSY, Fault.BUSY]
    assert DeltaTable(table).version() == 3
    assert spark.read.format("delta").load(table).count() == 40


def test_an_entry_of_another_is_no_conflict_that_delta_would_get_around(
    spark: SparkSession, table: str
) -> None:
    """Delta repeats a commit behind another's after FileAlreadyExistsException, and no other."""
    before = store_of(table).read(entry_name(0))

    with pytest.raises(Py4JJavaError, match="is there already: another job has written it") as seen:
        put(spark, f"{table}/{entry_name(0)}", "{}")

    assert seen.value.java_exception.getClass().getName() == "java.io.IOException"
    assert store_of(table).read(entry_name(0)) == before


def put(spark: SparkSession, path: str, line: str) -> None:
    """Put an entry as Delta does."""
    jvm, context = spark._jvm, spark._jsc
    assert jvm is not None
    configuration = context.hadoopConfiguration()
    lines = jvm.java.util.ArrayList()
    lines.add(line)
    log = jvm.wal2lake.OneWriterLogStore(configuration)
    overwrite = False
    log.write(jvm.org.apache.hadoop.fs.Path(path), lines.iterator(), overwrite, configuration)


def test_spark_writes_nothing_once_the_lock_may_be_lost(spark: SparkSession, table: str) -> None:
    held_for(spark, 0.0)
    try:
        with pytest.raises((PySparkException, Py4JJavaError), match="lock of the lake"):
            append(spark, table)
    finally:
        held_for(spark, FOREVER)

    assert DeltaTable(table).version() == 0
