"""Defines the Delta table ``log``: its columns, how events become its rows, and what landed."""

from typing import Final

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.lake.commit.appender import MEASURED
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.create.first_entry import create_plain_table
from cdc.lake.create.table import described
from cdc.lake.table.positions import LandedPosition
from cdc.land.landing import Landing, TopicSpan

FRAME_BYTES: Final = 5  # Confluent frame: a zero byte and the schema id in four bytes
LOG_COLUMNS: Final = (
    "landing BIGINT, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, "
    "key_schema_id INT, value_schema_id INT, landed_at TIMESTAMP"
)


def create_log(spark: SparkSession, path: str, position: LandedPosition) -> None:
    """Create the empty log, with a position in its first commit.

    Spark's first write would cost some seconds of the job's start, so it is asked only for what
    this process cannot create.
    """
    fields = described(LOG_COLUMNS)
    try:
        create_plain_table(path, fields, {MEASURED: "4"}, position.metadata())
    except TakeMergeError:
        create_log_by_spark(spark, path, position)


def create_log_by_spark(spark: SparkSession, path: str, position: LandedPosition) -> None:
    """Create the same log by Spark."""
    empty = spark.createDataFrame([], LOG_COLUMNS)
    writer = empty.write.format("delta").option("userMetadata", position.metadata())
    # Collect statistics for file skipping on the first four columns only, not on raw bytes.
    writer.option("delta.dataSkippingNumIndexedCols", "4").mode("errorifexists").save(path)


def log_rows(events: DataFrame, landing: int) -> DataFrame:
    """Return rows of the log from rows of Spark's Kafka source."""
    return events.select(
        F.lit(landing).cast("long").alias("landing"),
        "topic",
        "partition",
        "offset",
        "timestamp",
        "key",
        "value",
        "headers",
        schema_id("key").alias("key_schema_id"),
        schema_id("value").alias("value_schema_id"),
        F.current_timestamp().alias("landed_at"),
    )


def schema_id(column: str) -> Column:
    """Return the writer schema's id in a Confluent frame; null if the bytes are not a frame."""
    framed = (F.length(column) > FRAME_BYTES) & (F.hex(F.substring(column, 1, 1)) == "00")
    number = F.conv(F.hex(F.substring(column, 2, FRAME_BYTES - 1)), 16, 10).cast("long")
    # Registry ids are positive 32-bit integers; a larger number is garbage.
    return F.when(framed & (number < 2**31), number.cast("int"))


def summary(rows: DataFrame) -> list[Row]:
    """Return one row per landing and topic: last offset, number of events, writer schemas."""
    grouped = rows.groupBy("landing", "topic").agg(
        F.max("offset").alias("last"),
        F.count("*").alias("count"),
        F.collect_set("value_schema_id").alias("schema_ids"),
    )
    return grouped.collect()


def landings(rows: list[Row]) -> list[Landing]:
    """Return the landings in order, from rows of ``summary``."""
    spans: dict[int, dict[str, TopicSpan]] = {}
    for row in rows:
        spans.setdefault(row["landing"], {})[row["topic"]] = TopicSpan(
            last=row["last"], count=row["count"], schema_ids=frozenset(row["schema_ids"])
        )
    return [Landing(number=number, topics=topics) for number, topics in sorted(spans.items())]
