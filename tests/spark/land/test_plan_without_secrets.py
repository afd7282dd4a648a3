"""The plan of a query on Kafka, which Spark prints and logs, has no secret in it."""

from pathlib import Path

from pyspark.sql import SparkSession

from cdc.kafka.broker import Broker, spark_options

KEY = "-----BEGIN PRIVATE KEY-----\nc3ByaW5n\n-----END PRIVATE KEY-----\n"


def test_neither_password_nor_key_is_in_the_plan(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    (tmp_path / "own").write_text("-----BEGIN CERTIFICATE-----")
    broker = Broker(
        "nowhere:1",
        tls=True,
        certificate_file=tmp_path / "own",
        key_file=tmp_path / "key",
        user="u",
        password="hunter2",
    )
    reader = spark.readStream.format("kafka").options(**spark_options(broker))

    plan = reader.option("subscribe", "t").load()._jdf.queryExecution().toString()

    assert "kafka.bootstrap.servers=nowhere:1" in plan
    assert "hunter2" not in plan
    assert "c3ByaW5n" not in plan
