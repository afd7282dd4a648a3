"""Makes the archives of Java's classes that tests map: ``make test`` does so before it begins.

A test's own session and servers would leave them too, but only when they end by themselves; until
then all others do without.
"""

import tempfile
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from cdc.stack.artifacts import class_archive
from cdc.stack.artifacts.lock_file import spark_jars
from tests.local_spark import local_spark
from tests.servers.process import servers


def main() -> None:
    """Make those that are missing; where that of Spark is there, the others are taken to be."""
    jars = spark_jars()
    if class_archive.existing("job", class_archive.spark_class_path(jars)).flags:
        return
    with tempfile.TemporaryDirectory() as folder:
        _start_and_stop(Path(folder) / "servers")
        with local_spark(Path(folder) / "scratch") as spark:
            spark.sparkContext.setLogLevel("ERROR")
            _work(spark, str(Path(folder) / "table"))


def _start_and_stop(root: Path) -> None:
    root.mkdir()
    by_name = servers(root)
    # A worker loads most of its classes with a connector: it is left to the first test of one.
    started = [by_name[name]() for name in ("kafka", "registry")]
    try:
        for server in started:
            server.start()
    finally:
        for server in reversed(started):
            server.stop()


def _work(spark: SparkSession, path: str) -> None:
    rows = spark.range(9).selectExpr("id", "CAST(id AS string) AS name")
    marked = rows.write.format("delta").option("delta.enableDeletionVectors", "true")
    marked.save(path)
    merger = DeltaTable.forPath(spark, path).alias("t").merge(rows.alias("s"), "t.id = s.id")
    merger.whenMatchedDelete("t.id < 4").whenNotMatchedInsertAll().execute()
    spark.sql(f"OPTIMIZE delta.`{path}`")
    spark.read.format("delta").load(path).groupBy("name").count().toArrow()
    stream = spark.readStream.format("delta").load(path).writeStream.format("noop")
    stream.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main()
