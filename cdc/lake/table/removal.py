"""Removing a directory of the lake, wherever the lake is."""

from pyspark.sql import SparkSession


def remove(spark: SparkSession, path: str) -> None:
    """Everything under the path; nothing happens where there is nothing."""
    jvm = spark._jvm  # noqa: SLF001 - the only way to the file systems that Spark knows
    context = spark._jsc  # noqa: SLF001
    assert jvm is not None  # noqa: S101 - a session of this process has one
    place = jvm.org.apache.hadoop.fs.Path(path)
    place.getFileSystem(context.hadoopConfiguration()).delete(place, True)  # noqa: FBT003 - with all in it
