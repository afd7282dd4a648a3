"""The Spark session: every setting in one list, each with its reason."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from cdc.config import Config
from cdc.lake.session_log import quieten
from cdc.lake.upkeep.transaction_log import AGE_LIMIT

_AVRO: Final = "-Dorg.apache.avro.fastread=false"
"""Avro's fast reader keeps every schema that a task has parsed as long as the JVM lives: tables
times rounds of them fill the heap of the job within hours."""
TEXTS: Final[dict[str, str]] = {
    # A text of the source is what it is: ${env:..} in it is no variable of the environment.
    "spark.sql.variable.substitute": "false",
    # What cdc/events/values/sql_text.py escapes is read as it was meant.
    "spark.sql.parser.escapedStringLiterals": "false",
}
"""How Spark reads SQL: all texts of ours are made for it, so that no configuration wins over it."""
SETTINGS: Final[dict[str, str]] = {
    **TEXTS,
    # Delta: its SQL commands and its catalogue.
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Micro-batches are small: 200 shuffle tasks would cost more than the work in them.
    "spark.sql.shuffle.partitions": "2",
    # The state of a Delta log is a few hundred files: the default of 50 tasks is pure overhead.
    "spark.databricks.delta.snapshotPartitions": "2",
    # A merge that changes nothing must still move the position in the table's newest commit.
    "spark.databricks.delta.skipRecordingEmptyCommits": "false",
    # A version that is old is read all the same, as long as its files are kept.
    AGE_LIMIT: "false",
    # Deletion vectors: a merge rewrites the changed rows and not the files they lie in.
    "spark.databricks.delta.merge.deletionVectors.persistent": "true",
    # Every table has its own plans: with the default of 100 classes each merge compiles anew.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Source timestamps are instants; text forms of them are made in UTC.
    "spark.sql.session.timeZone": "UTC",
    # A cast that fails must not become NULL unseen; try_cast is used where it may fail.
    "spark.sql.ansi.enabled": "true",
    # Dates before 1582 are written as they are read: proleptic Gregorian on both sides.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    # INT96 counts nanoseconds: readers other than Spark see other instants beyond the year 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A gap in a topic stops the job; never go on over it.
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "false",
    # An operation and the rounds share the cores: neither waits for the other to end.
    "spark.scheduler.mode": "FAIR",
    # Nothing listens but on loopback, and the UI not at all: the status command tells more.
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Small heaps: one collector thread pool less on two cores. Defaults, so that extraJavaOptions
    # of the configuration come on top of them.
    "spark.driver.defaultJavaOptions": f"-XX:+UseSerialGC {_AVRO} -Dderby.system.home=/dev/null",
    "spark.executor.defaultJavaOptions": _AVRO,
    "spark.log.level": "WARN",
    # Progress bars of Spark would be written over ours.
    "spark.ui.showConsoleProgress": "false",
    # The job keeps no state between micro-batches: two kept batches are enough to look at.
    "spark.sql.streaming.minBatchesToRetain": "2",
}

LOCAL: Final[dict[str, str]] = {
    # Driver and executor are one process: a job that stood still for two minutes (a machine that
    # sleeps, SIGSTOP) must not think that it has lost itself, and end.
    "spark.storage.blockManagerHeartbeatTimeoutMs": str(365 * 24 * 3600 * 1000),
    # Its ports on the loopback give blocks of rows to whoever asks: of a local user, only to us.
    # Spark makes the secret of each run by itself; on a cluster it is the cluster's.
    "spark.authenticate": "true",
}
"""Beside the others where the master is local."""


def build(config: Config, jars: Iterable[Path]) -> SparkSession:
    """Start the job's session with ``jars`` beside pyspark's own.

    ``spark.conf`` of the configuration wins over everything but ``TEXTS``.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Spark looks the host name up and warns of what it finds; it is to use loopback anyway.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.appName(f"wal2lake-{config.name}")
        .master(config.spark.master)
        .config("spark.jars", ",".join(str(jar) for jar in jars))
        .config("spark.driver.memory", config.spark.driver_memory)
        .config("spark.local.dir", str(_scratch(config)))
        .config("spark.sql.warehouse.dir", str(_scratch(config) / "warehouse"))
    )
    local = LOCAL if config.spark.master.startswith("local") else {}
    for name, value in {**SETTINGS, **local, **config.spark.conf, **TEXTS}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    quieten(session, _scratch(config))
    return session


def activate(session: SparkSession) -> None:
    """Make it the one whose settings hold for what this thread says in SQL.

    A thread of ours is one of Java's in which no session is active. Some of its texts are read with
    Spark's defaults then, not with ``TEXTS``: an update in a MERGE put variables into the names.
    """
    jvm = session._jvm  # noqa: SLF001
    assert jvm is not None  # noqa: S101 - a session of this process has one
    java = getattr(jvm, "org.apache.spark.sql.classic.SparkSession")
    java.setActiveSession(session._jsparkSession)  # noqa: SLF001


def _scratch(config: Config) -> Path:
    folder = config.state_dir / "scratch"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
