"""Tables as the job writes them, with deletion vectors, are read correctly without Spark."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from cdc.client.verify.lake_rows import LakeTable
from cdc.client.verify.render import rendering
from cdc.lake.records.ledger import TableEntry

pytestmark = pytest.mark.spark

# Type in the lake, type in Postgres, value.
COLUMNS = {
    "id": ("int", "int4", "i"),
    "d": ("decimal(12,4)", "numeric", "1.5"),
    "f": ("double", "float8", "double('NaN')"),
    "t": ("timestamp_ntz", "timestamp", "timestamp_ntz'0001-01-01 00:00:00.000001'"),
    "z": ("timestamp", "timestamptz", "timestamp'9999-12-31 23:59:59.999999Z'"),
    "day": ("date", "date", "date'1582-10-04'"),
    "s": ("string", "text", "'x '"),
    "b": ("binary", "bytea", "X'00FF'"),
    "a": ("array<string>", "_text", "array('a', NULL)"),
}
TEXTS = {
    "d": "1.5000",
    "f": "NaN",
    "t": "-62135596799999999",
    "z": "253402300799999999",
    "day": "-141438",
    "s": "x ",
    "b": "00ff",
    "a": "[1:a,N]",
}


@pytest.fixture(scope="module")
def path(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write 1000 rows to one file; delete every third and update one, by deletion vectors."""
    path = str(tmp_path_factory.mktemp("lake") / "t")
    columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in COLUMNS.items())
    spark.sql(
        f"CREATE TABLE delta.`{path}` ({columns}, _cdc_offset bigint) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    rows = spark.range(1000).coalesce(1).selectExpr("int(id) AS i")
    values = [f"CAST({value} AS {kind}) AS {name}" for name, (kind, _, value) in COLUMNS.items()]
    rows.selectExpr(*values, "bigint(0)").createOrReplaceTempView("made")
    spark.sql(f"INSERT INTO delta.`{path}` SELECT * FROM made")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 3 = 0")
    spark.sql(f"UPDATE delta.`{path}` SET s = 'changed' WHERE id = 1")
    return path


def entry(path: str, version: int) -> TableEntry:
    return TableEntry(table="shop.t", path=path, version=version, offset=0, state="streaming")


def texts(path: str, version: int) -> dict[str, dict[str, str]]:
    table = LakeTable(entry(path, version))
    renderings = {name: rendering(pg, table.types[name]) for name, (_, pg, _) in COLUMNS.items()}
    rows = pa.concat_tables(table.rows(renderings)).rename_columns(list(COLUMNS)).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row for row in rows}


def test_a_table_written_by_the_job_is_read_exactly(path: str) -> None:
    assert list(Path(path).rglob("deletion_vector*.bin")), "the test is about deletion vectors"

    found = texts(path, 3)
    assert sorted(int(key) for key in found) == [n for n in range(1000) if n % 3]
    assert found["2"] == TEXTS | {"id": "2"}
    assert found["1"]["s"] == "changed"


def test_an_earlier_version_is_read_as_it_was(path: str) -> None:
    found = texts(path, 1)
    assert len(found) == 1000
    assert found["1"] == TEXTS | {"id": "1"}


def test_sql_sees_the_same_rows(path: str) -> None:
    answer = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT count(*) FROM t")
    assert pa.table(answer.read_all()).column(0).to_pylist() == [666]
