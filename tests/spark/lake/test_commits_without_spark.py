"""What the job commits without Spark is read by Spark, Delta Kernel, delta-rs and DuckDB alike.

Also after all that happens to a table later: a checkpoint, a MERGE and an OPTIMIZE on top, RESTORE
and VACUUM, each followed by another such commit.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from cdc.events.schema import Column, TableSchema
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.commit.snapshot import entry_name
from cdc.lake.table import store
from cdc.lake.table.merge_plan import merge_plan
from cdc.lake.table.positions import METADATA_CONF, Position, position
from cdc.tables import TableId, TableMode
from tests.duckdb_reader import duckdb_with_delta

pytestmark = pytest.mark.spark

SCHEMA: Final = TableSchema(
    table=TableId("public", "t"),
    columns=(
        Column("id", "int"),
        Column("name", "string"),
        Column("small", "smallint"),
        Column("flag", "boolean"),
        Column("single", "float"),
        Column("double", "double"),
        Column("day", "date"),
        Column("price", "decimal(10,2)"),
        Column("amount", "decimal(38,10)"),
        Column("at", "timestamp"),
        Column("local", "timestamp_ntz"),
        Column("bytes", "binary"),
        Column("tags", "array<string>"),
        Column("odd name, yes", "string"),
    ),
    key=("id", "name", "small", "single", "double", "day", "price", "amount", "at", "local"),
    mode=TableMode.KEYED,
)
"""Nearly all columns are of the key, so that they have statistics."""


def row(number: int, offset: int) -> dict[str, Any]:
    """Return a row whose values are all different from those of other numbers."""
    return {
        "id": number,
        "name": f"{'ä' * (number % 40)}{number:05d}\U0001f600",
        "small": number % 3000,
        "flag": number % 2 == 0,
        "single": number / 4,
        "double": -number / 3,
        "day": date(1, 1, 1) + timedelta(days=3000 * (number % 1000)),
        "price": Decimal(number) / 100,
        "amount": Decimal("12345678901234567890123456.0123456789") - number,
        "at": datetime(1582, 10, 4, 1, 2, 3, 456789, UTC) + timedelta(microseconds=number),
        "local": datetime(1, 1, 1) + timedelta(hours=number, microseconds=1),  # noqa: DTZ001
        "bytes": bytes([number % 256, 0, 255]),
        "tags": [f"t{number}", None, ""],
        "odd name, yes": None if number % 5 else "",
        "_cdc_offset": offset,
    }


Rows = dict[int, dict[str, Any]]


class Table:
    """The table, the rows that it should have, and where they lie."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark, self.path = spark, path
        self.expected: Rows = {}
        self.offset = 1
        self.committer = Committer(path)

    def commit(self, upserts: Sequence[int], deletes: Sequence[int] = ()) -> int:
        """Commit without Spark; look the old rows up by reading the key columns of each file."""
        self.offset += 1
        new = {number: row(number, self.offset) for number in upserts}
        opened = self.committer.open()
        deleted = dict(self._places({*upserts, *deletes}))
        rows = pa.Table.from_pylist(list(new.values()), schema=arrow_schema(opened.metadata))
        version = self.committer.commit(rows, deleted, Position(epoch=1, offset=self.offset))
        self.expected = {k: v for k, v in self.expected.items() if k not in deletes} | new
        return version

    def _places(self, keys: set[int]) -> Iterator[tuple[str, list[int]]]:
        opened = self.committer.open()
        physical = opened.metadata.columns[0].physical
        for path, file in opened.files.items():
            marked = self.committer.deleted_rows(file)
            stored = pq.read_table(f"{self.path}/{path}", columns=[physical])
            numbers = enumerate(stored.column(physical).to_pylist())
            if places := [n for n, key in numbers if key in keys and n not in marked]:
                yield path, places

    def merge(self, upserts: Sequence[int], deletes: Sequence[int] = ()) -> None:
        """Do the same by the job's MERGE."""
        self.offset += 1
        new = {number: row(number, self.offset) for number in upserts}
        gone = [row(number, self.offset) | {"_cdc_deleted": True} for number in deletes]
        listed = [r | {"_cdc_deleted": False} for r in new.values()] + gone
        types = ", ".join(f"`{c.name}` {c.type}" for c in SCHEMA.columns)
        frame = self.spark.createDataFrame(
            [tuple(r.values()) for r in listed], f"{types}, _cdc_offset bigint, d boolean"
        ).withColumnRenamed("d", "_cdc_deleted")
        place = Position(epoch=1, offset=self.offset)
        store.merge(self.spark, self.path, frame, merge_plan(SCHEMA, keep=False), place)
        self.expected = {k: v for k, v in self.expected.items() if k not in deletes} | new

    def sql(self, statement: str) -> None:
        """Run a statement as the job's upkeep does: with the position in its commit."""
        place = Position(epoch=1, offset=self.offset)
        self.spark.conf.set(METADATA_CONF, place.metadata())
        self.spark.sql(statement.format(f"delta.`{self.path}`"))

    def check(self, expected: Rows | None = None) -> None:
        """Read the newest version by all readers."""
        wanted = sorted((expected or self.expected).values(), key=lambda found: found["id"])
        assert by_spark(self.spark, self.path) == wanted
        assert by_delta_rs(self.path) == wanted
        assert by_duckdb(self.path) == wanted
        assert by_kernel(self.spark, self.path) == [found["id"] for found in wanted]


def by_spark(spark: SparkSession, path: str, where: str = "true") -> list[dict[str, Any]]:
    frame = spark.read.format("delta").load(path).where(where).orderBy("id")
    found: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return found


def by_delta_rs(path: str, where: str = "true") -> list[dict[str, Any]]:
    query = f"SELECT * FROM t WHERE {where} ORDER BY id"
    result = QueryBuilder().register("t", DeltaTable(path)).execute(query).read_all()
    found: list[dict[str, Any]] = pa.table(result).to_pylist()
    return found


def by_duckdb(path: str, where: str = "true") -> list[dict[str, Any]]:
    with duckdb_with_delta() as connection:
        query = f"SELECT * FROM delta_scan('{path}') WHERE {where} ORDER BY id"
        found: list[dict[str, Any]] = connection.execute(query).arrow().read_all().to_pylist()
    return found


def by_kernel(spark: SparkSession, path: str) -> list[int]:
    """Return the ids that Delta Kernel for Java reads."""
    jvm: Any = spark.sparkContext._jvm
    kernel, empty = jvm.io.delta.kernel, jvm.java.util.Optional.empty()
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    engine = kernel.defaults.engine.DefaultEngine.create(hadoop)
    snapshot = kernel.Table.forPath(engine, path).getLatestSnapshot(engine)
    scan = snapshot.getScanBuilder().build()
    state = scan.getScanState(engine)
    schema = kernel.internal.data.ScanStateRow.getPhysicalDataReadSchema(state)
    found: list[int] = []
    for file in _each(batch.getRows() for batch in _java(scan.getScanFiles(engine))):
        status = kernel.internal.InternalScanFileUtils.getAddFileStatus(file)
        one = kernel.internal.util.Utils.singletonCloseableIterator
        for read in _java(engine.getParquetHandler().readParquetFiles(one(status), schema, empty)):
            data = one(read.getData())
            logical = kernel.Scan.transformPhysicalData(engine, state, file, data)
            found += [r.getInt(0) for r in _each(batch.getRows() for batch in _java(logical))]
    return sorted(found)


def _java(iterator: Any) -> Iterator[Any]:  # noqa: ANN401 - of Java
    while iterator.hasNext():
        yield iterator.next()


def _each(iterators: Iterator[Any]) -> Iterator[Any]:
    for iterator in iterators:
        yield from _java(iterator)


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rows]:
    """Make a table of two files of Spark's, one of them with a vector of Spark's."""
    path = tmp_path_factory.mktemp("base") / "t"
    store.create(spark, str(path), SCHEMA, Position(epoch=1, offset=0))
    table = Table(spark, str(path))
    table.merge(range(60))
    table.merge([3, 60], deletes=[0, 59])
    return path, table.expected


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path, base: tuple[Path, Rows]) -> Table:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    shutil.copytree(base[0], tmp_path / "t")
    table = Table(spark, str(tmp_path / "t"))
    table.expected, table.offset = dict(base[1]), 3
    return table


def test_all_readers_see_the_same_rows(table: Table) -> None:
    table.commit([1, 2, 61], deletes=[4, 60])
    table.commit([2, 62], deletes=[61, 5])

    table.check()
    assert position(table.path) == Position(epoch=1, offset=table.offset)


def test_also_from_a_checkpoint_and_below_a_merge(table: Table) -> None:
    table.commit([1, 2, 61], deletes=[4, 60])
    DeltaTable(table.path).create_checkpoint()
    for version in range(table.committer.open().version):
        (Path(table.path) / entry_name(version)).unlink()

    table.merge([2, 6, 63], deletes=[7, 61])

    table.check()
    table.commit([6, 64], deletes=[63, 8])
    table.check()


def test_also_after_optimize_restore_and_vacuum(table: Table, spark: SparkSession) -> None:
    version = table.commit([1, 2, 61], deletes=[4, 60])
    kept = dict(table.expected)
    table.commit([2, 62], deletes=[61, 5])
    table.sql("OPTIMIZE {}")
    table.commit([6, 65], deletes=[62, 9])
    table.check()

    table.sql(f"RESTORE {{}} TO VERSION AS OF {version}")
    table.expected = kept
    table.commit([10], deletes=[11])
    table.check()

    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    table.sql("VACUUM {} RETAIN 0 HOURS")
    table.commit([12, 66], deletes=[10])
    table.check()


LITERALS: Final[Mapping[str, Callable[[dict[str, Any]], str]]] = {
    "id": lambda r: f"{r['id']}",
    "name": lambda r: f"'{r['name']}'",
    "small": lambda r: f"CAST({r['small']} AS SMALLINT)",
    "single": lambda r: f"CAST({r['single']} AS FLOAT)",
    "double": lambda r: f"CAST({r['double']!r} AS DOUBLE)",
    "day": lambda r: f"DATE '{r['day'].isoformat()}'",
    "price": lambda r: f"CAST('{r['price']}' AS DECIMAL(10,2))",
    "amount": lambda r: f"CAST('{r['amount']}' AS DECIMAL(38,10))",
    "at": lambda r: f"TIMESTAMP '{r['at'].isoformat(sep=' ')}'",
}


def test_statistics_let_no_reader_skip_a_row(table: Table) -> None:
    """Each of several conditions would hide the row if the file's bounds were wrong."""
    numbers = [7, 3001, 4999]
    table.commit(numbers, deletes=range(100))

    for found in (table.expected[number] for number in numbers):
        where = " AND ".join(f"{name} = {of(found)}" for name, of in LITERALS.items())
        assert by_spark(table.spark, table.path, where) == [found], where
        assert by_duckdb(table.path, where.replace("TIMESTAMP", "TIMESTAMPTZ")) == [found], where
        of_fusion = " AND ".join(
            f"{name} = {LITERALS[name](found)}" for name in ("id", "name", "small", "price", "day")
        )
        assert by_delta_rs(table.path, of_fusion) == [found], of_fusion


def test_an_aggregate_that_spark_takes_from_statistics_is_right(table: Table) -> None:
    table.commit([7, 3001], deletes=range(100))
    query = "SELECT count(*) n, min(id) a, max(id) b, min(_cdc_offset) c, max(price) d FROM {}"

    found = table.spark.sql(query.format(f"delta.`{table.path}`")).collect()[0]

    assert tuple(found) == (2, 7, 3001, table.offset, Decimal("30.01"))
