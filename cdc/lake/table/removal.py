"""Removes a directory of the lake, on any file system."""

from pyspark.sql import SparkSession


def remove(spark: SparkSession, path: str) -> None:
    """Remove everything below the path; a path that does not exist is no error."""
    jvm = spark._jvm  # noqa: SLF001 - the only way to Spark's file systems
    context = spark._jsc  # noqa: SLF001
    assert jvm is not None  # noqa: S101 - a session of this process has one
    place = jvm.org.apache.hadoop.fs.Path(path)
    place.getFileSystem(context.hadoopConfiguration()).delete(place, True)  # noqa: FBT003 - recursive
