"""Commits to a table of many types without Spark, as the job does, and reads it by all readers."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from cdc.events.schema import Column, TableSchema
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.table import store
from cdc.lake.table.merge_plan import merge_plan
from cdc.lake.table.positions import METADATA_CONF, Position
from cdc.tables import TableId, TableMode
from tests.duckdb_reader import duckdb_with_delta
from tests.local_spark import frame_of

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
        frame = frame_of(
            self.spark,
            [tuple(r.values()) for r in listed],
            f"{types}, _cdc_offset bigint, d boolean",
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
        wanted = in_order(self.expected if expected is None else expected)
        assert by_spark(self.spark, self.path) == wanted
        assert by_delta_rs(self.path) == wanted
        assert by_duckdb(self.path) == wanted
        assert by_kernel(self.spark, self.path) == [found["id"] for found in wanted]


def in_order(rows: Rows) -> list[dict[str, Any]]:
    """Return the rows as the readers here do."""
    return sorted(rows.values(), key=lambda found: found["id"])


def by_spark(
    spark: SparkSession, path: str, where: str = "true", version: int | None = None
) -> list[dict[str, Any]]:
    frame = store.read(spark, path, version).where(where).orderBy("id")
    found: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return found


def by_delta_rs(path: str, where: str = "true", version: int | None = None) -> list[dict[str, Any]]:
    query = f"SELECT * FROM t WHERE {where} ORDER BY id"
    table = DeltaTable(path, version=version)
    result = QueryBuilder().register("t", table).execute(query).read_all()
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
