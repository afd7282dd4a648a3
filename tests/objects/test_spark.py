"""What Spark does in an object store: each commit once, tables replaced, rewritten and vacuumed."""

from collections.abc import Callable, Iterator

import pytest
from deltalake import DeltaTable
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyarrow import fs
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc.config import Config, Lake, Source, Spark
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import Column, TableSchema
from cdc.events.values.sql_text import spark_delta
from cdc.lake.files.file_store import StoreError
from cdc.lake.files.store_of import store_of
from cdc.lake.files.unreachable import store_errors_named
from cdc.lake.session import build, end, held_for
from cdc.lake.table import store
from cdc.lake.table.entry_file import entry_name
from cdc.lake.table.merge_plan import OFFSET
from cdc.lake.table.positions import Position, position
from cdc.lake.table.removal import remove
from cdc.lake.table.swap import is_readable, swap
from cdc.lake.upkeep.maintenance import optimize, purge, vacuum
from cdc.stack.artifacts import class_archive
from cdc.stack.artifacts.install import install
from cdc.stack.artifacts.lock_file import OBJECTS, spark_jars
from cdc.tables import TableId, TableMode
from tests.local_spark import QUICK
from tests.objects.faults import Fault, first, share
from tests.objects.server import ObjectServer
from tests.objects.test_commits import seen

pytestmark = pytest.mark.spark

FOREVER = 1e6
ORDERS = TableSchema(
    table=TableId("shop", "orders"),
    columns=(Column("id", "int"),),
    key=("id",),
    mode=TableMode.KEYED,
)


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
    jars = spark_jars(objects=True)
    archive = class_archive.existing("job", class_archive.spark_class_path(jars))
    session = build(config, jars, archive.flags)
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


def test_a_silent_store_is_no_table_that_cannot_be_read(
    spark: SparkSession, table: str, objects: ObjectServer
) -> None:
    """Whoever replaces a table would move it away otherwise."""
    assert is_readable(spark, table)
    objects.faults.follow(share(1, {Fault.FORBIDDEN: 1.0}))

    with pytest.raises(StoreError):
        is_readable(spark, table)


def test_an_error_of_spark_s_is_known_to_be_the_store_s(
    spark: SparkSession, table: str, objects: ObjectServer
) -> None:
    objects.faults.follow(first(99, Fault.FORBIDDEN, "PUT"))

    with pytest.raises(CdcError) as raised, store_errors_named():
        append(spark, table)

    assert raised.value.kind is ErrorKind.UNREACHABLE
    assert DeltaTable(table).version() == 0


def untouched(_path: str) -> None:
    pass


def emptied(path: str) -> None:
    store_of(path).tree.delete_dir_contents("", accept_root_dir=True)


def unreadable(path: str) -> None:
    with store_of(path).tree.open_output_stream(entry_name(0)) as file:
        file.write(b"{garbage")


@pytest.mark.parametrize("damage", [untouched, emptied, unreadable])
def test_a_table_takes_the_place_of_what_is_there(
    spark: SparkSession, lake: str, objects: ObjectServer, damage: Callable[[str], None]
) -> None:
    held_for(spark, FOREVER)
    session, live, made = spark.newSession(), f"{lake}/shop/orders", f"{lake}/_wal2lake/aside/1"
    for path, number in ((live, 1), (made, 2)):
        store.create(session, path, ORDERS, Position(epoch=1, offset=number))
        new = session.sql(f"SELECT {number} AS id, {number}L AS {OFFSET}")
        store.append(path, new, Position(epoch=1, offset=number))
    damage(live)
    objects.faults.follow(share(2, {Fault.BUSY: 0.05, Fault.LATE_BUSY: 0.05}))

    note = swap(
        session,
        made,
        live,
        schema=ORDERS,
        position=Position(epoch=1, offset=2),
        structure=None,
        broken=f"{lake}/_wal2lake/broken/1/shop/orders",
        going_on=lambda: None,
    )

    objects.faults.heal()
    assert (seen(live), position(live)) == ([2], Position(epoch=1, offset=2))
    moved = store_of(f"{lake}/_wal2lake/broken/1/shop/orders").names("_delta_log")
    assert bool(note) == bool(moved) == (damage is unreadable)
    remove(session, made)
    assert store_of(made).names("_delta_log") == []


def test_files_are_rewritten_and_old_ones_deleted(
    spark: SparkSession, lake: str, objects: ObjectServer
) -> None:
    held_for(spark, FOREVER)
    session, path, at = spark.newSession(), f"{lake}/shop/t", Position(epoch=1, offset=1)
    store.create(session, path, ORDERS, at)
    for number in range(3):
        new = session.sql(f"SELECT CAST(id AS INT) AS id, 1L AS {OFFSET} FROM range({number + 1})")
        store.append(path, new, at)
    session.sql(f"DELETE FROM {spark_delta(path)} WHERE id = 0").collect()
    objects.faults.follow(share(4, {Fault.BUSY: 0.05, Fault.LATE_BUSY: 0.05}))
    optimize(session, path, at.metadata())
    purge(session, path, at.metadata())
    store.set_properties(session, path, {"delta.deletedFileRetentionDuration": "interval 0 hours"})
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    vacuum(session, path, at.metadata())
    objects.faults.heal()

    assert (seen(path), position(path)) == ([1, 1, 2], at)
    found = store_of(path).tree.get_file_info(fs.FileSelector("", recursive=True))
    left = [file.path for file in found if file.path.endswith(".parquet")]
    assert left == [uri.removeprefix(f"{path}/") for uri in DeltaTable(path).file_uris()]
