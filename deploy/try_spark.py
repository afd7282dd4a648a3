"""Does with Spark what the job does, so that an image that lacks a class for it is not built."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.config import Config, Lake, Source, Spark
from cdc.lake.session import build
from cdc.stack.artifacts.lock_file import spark_jars


def main(folder: Path) -> None:
    """Read Parquet of every codec, write a Delta table, merge into it and look after it.

    An object store is not asked for anything, but its clients are made.
    """
    config = Config(
        source=Source(tables=["a.*"]),
        lake=Lake(path=str(folder / "lake")),
        spark=Spark(master="local[1]", driver_memory="600m"),
        state_dir=folder / "state",
    )
    spark = build(config, spark_jars(objects=True))
    rows = pa.table({"id": range(1000), "text": [f"t{n}" for n in range(1000)]})
    for codec in ("none", "snappy", "zstd", "lz4", "gzip"):
        pq.write_table(rows, folder / f"{codec}.parquet", compression=codec)
        assert spark.read.parquet(str(folder / f"{codec}.parquet")).toArrow().num_rows == len(rows)
    _merge(spark, spark.createDataFrame(rows), str(folder / "table"))
    _make_clients(spark)
    spark.stop()


def _make_clients(spark: SparkSession) -> None:
    jvm, context = spark._jvm, spark._jsc  # noqa: SLF001 - the only way to these classes
    assert jvm is not None
    configuration = context.hadoopConfiguration()
    configuration.set("fs.s3a.endpoint.region", "us-east-1")
    jvm.org.apache.hadoop.fs.Path("s3a://bucket/").getFileSystem(configuration).close()
    jvm.wal2lake.OneWriterLogStore.heldFor(0.0)


def _merge(spark: SparkSession, rows: DataFrame, path: str) -> None:
    rows.write.format("delta").save(path)
    table = DeltaTable.forPath(spark, path)
    newest = F.row_number().over(Window.partitionBy(F.col("id") % 7).orderBy(F.desc("id")))
    source = rows.withColumn("n", newest).withColumn("hash", F.sha2("text", 256)).alias("s")
    merge = table.alias("t").merge(source, "t.id = s.id").whenMatchedDelete("s.n = 1")
    merge.whenMatchedUpdate(set={"text": "s.hash"}).execute()
    for command in ("OPTIMIZE", "VACUUM"):
        spark.sql(f"{command} delta.`{path}`").collect()
    assert spark.read.format("delta").load(path).count() == 993  # noqa: PLR2004 - seven are deleted


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
