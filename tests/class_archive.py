"""Makes the archive of Spark's classes that tests map: ``make test`` does so before it begins.

A test's own session would leave one too, but only when it ends; until then all others do without.
"""

import tempfile
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from cdc.stack.artifacts import class_archive
from cdc.stack.artifacts.lock_file import spark_jars
from tests.local_spark import local_spark


def main() -> None:
    """Make the archive if it is missing, by a short session that does what tests do."""
    jars = spark_jars()
    if class_archive.existing("job", class_archive.spark_class_path(jars)).flags:
        return
    with tempfile.TemporaryDirectory() as folder, local_spark(Path(folder) / "scratch") as spark:
        spark.sparkContext.setLogLevel("ERROR")
        _work(spark, str(Path(folder) / "table"))


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
