"""Runs the way of most tutorials, for comparison: JSON, foreachBatch, MERGE, Spark's defaults.

Run as ``python -m bench.tutorial.job <bootstrap servers> <lake> <jars> <progress file>``. It merges
the newest event of each key in a batch. It has no cuts, no ledger and no exact decimals, and it
writes Debezium's placeholder where a large value did not change.
"""

import json
import sys
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as in every tutorial
from pyspark.sql.streaming.query import StreamingQuery

PREFIX = "tutorial"
KEYS = {
    "customers": ["customer_id"],
    "products": ["product_id"],
    "product_descriptions": ["product_id"],
    "orders": ["order_id"],
    "order_lines": ["order_id", "line_no"],
    "payments": ["payment_id"],
    "page_views": [],
}
COLUMNS = {
    "customers": "customer_id long, name string, email string, country string, credit double,"
    " birthday int, tags array<string>, created_at string",
    "products": "product_id int, sku string, name string, price double, stock int,"
    " weight_kg double, attributes string, updated_at string",
    "product_descriptions": "product_id int, description string, revision int, reviewed_at string",
    "orders": "order_id long, customer_id long, status string, total double, placed_at string,"
    " note string",
    "order_lines": "order_id long, line_no int, product_id int, quantity int, unit_price double",
    "payments": "payment_id string, order_id long, amount double, method string, paid_at string",
    "page_views": "viewed_at string, customer_id long, path string, duration_ms int",
}


def session(jars: str) -> SparkSession:
    """Return a Spark session with Delta; ``jars`` is a comma-separated list."""
    return (
        SparkSession.builder.appName("tutorial")
        .config("spark.jars", jars)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        # Not from a tutorial: a measurement must not listen on the network.
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )


def merge(batch: DataFrame, lake: str, table: str) -> None:
    """Merge the newest event of each key; append the events of a table without a key."""
    keys, row = KEYS[table], f"struct<{COLUMNS[table]}>"
    envelope = f"payload struct<op string, before {row}, after {row}>"
    events = (
        batch.where(F.col("topic") == f"{PREFIX}.shop.{table}")
        .where("value is not null")
        .select("offset", F.from_json(F.col("value").cast("string"), envelope).alias("event"))
        .selectExpr("offset", "event.payload.op", "event.payload.before", "event.payload.after")
        .withColumn("row", F.coalesce("after", "before"))
    )
    if not keys:
        events.select("row.*").write.format("delta").mode("append").save(f"{lake}/{table}")
        return
    newest = Window.partitionBy(*(f"row.{key}" for key in keys)).orderBy(F.desc("offset"))
    changes = events.withColumn("n", F.row_number().over(newest)).where("n = 1")
    values: dict[str, str | Column] = {
        name: f"s.row.{name}"
        for name in (column.split()[0] for column in COLUMNS[table].split(", "))
    }
    (
        DeltaTable.forPath(batch.sparkSession, f"{lake}/{table}")
        .alias("t")
        .merge(changes.alias("s"), " and ".join(f"t.{k} = s.row.{k}" for k in keys))
        .whenMatchedDelete("s.op = 'd'")
        .whenMatchedUpdate(set=values)
        .whenNotMatchedInsert("s.op <> 'd'", values=values)
        .execute()
    )


def report(query: StreamingQuery, progress: Path) -> None:
    """Write Spark's progress of every batch as a line of JSON: its duration and end offsets."""
    seen = -1
    while query.isActive:
        query.awaitTermination(1)
        for batch in query.recentProgress:
            if batch.batchId > seen and batch.numInputRows:
                seen = batch.batchId
                with progress.open("a") as lines:
                    lines.write(json.dumps(json.loads(batch.json)) + "\n")


def main() -> None:
    """Create the tables and run the streaming query until it is stopped."""
    bootstrap, lake, jars, progress = sys.argv[1:]
    spark = session(jars)
    for table, columns in COLUMNS.items():
        spark.sql(f"create table delta.`{lake}/{table}` ({columns}) using delta")

    def write(batch: DataFrame, _: int) -> None:
        batch.persist()
        for table in KEYS:
            merge(batch, lake, table)
        batch.unpersist()

    query = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", ",".join(f"{PREFIX}.shop.{table}" for table in KEYS))
        .option("startingOffsets", "earliest")
        .load()
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", f"{lake}/_checkpoint")
        .start()
    )
    report(query, Path(progress))


if __name__ == "__main__":
    main()
