"""Build the Spark session of the job, with every setting and the reason for it."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from cdc.config import Config
from cdc.events.avro import LONGEST, MOST_ITEMS
from cdc.lake.layout import is_local
from cdc.lake.session_log import quieten
from cdc.lake.upkeep.transaction_log import AGE_LIMIT

_LOOPBACK: Final = "127.0.0.1"
_AVRO: Final = " ".join(
    (
        "-Dorg.apache.avro.fastread=false",
        f"-Dorg.apache.avro.limits.string.maxLength={LONGEST}",
        f"-Dorg.apache.avro.limits.bytes.maxLength={LONGEST}",
        f"-Dorg.apache.avro.limits.collectionItems.maxLength={MOST_ITEMS}",
    )
)
"""Avro's fast reader keeps every schema that a task has parsed until the JVM ends. Each round adds
one per table, which fills the job's heap within hours. Without limits, the decoder makes room for
whatever a length says: five broken bytes would end the job with an error of memory."""
_LATE_C2: Final = " ".join(
    f"-XX:Tier4{name}Threshold={calls}"
    for name, calls in {
        "Invocation": 50_000,
        "MinInvocation": 6_000,
        "Compile": 150_000,
        "BackEdge": 400_000,
    }.items()
)
"""Optimise code only after ten times as many calls as by default. While the job starts, half of its
processor time would go into optimising what runs a few thousand times; loops over many rows get
there within a second."""
_GIVEN_BACK: Final = "-XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40 -XX:-ShrinkHeapInSteps"
"""After large work, such as a MERGE of a backlog, a collection gives the heap's memory back to the
system. Otherwise the job keeps for ever what its largest work has taken."""
TEXTS: Final[dict[str, str]] = {
    # Text from the source is literal: ${env:..} in it must not expand to an environment variable.
    "spark.sql.variable.substitute": "false",
    # cdc/events/values/sql_text.py escapes strings for this setting.
    "spark.sql.parser.escapedStringLiterals": "false",
}
"""How Spark parses SQL. All SQL text of this project relies on it, so the user's configuration
cannot override it."""
LOG_LEVEL: Final = "spark.log.level"
IN_COMMANDS: Final = "ERROR"
"""A command says by itself what went wrong; Spark's warnings would stand between its lines."""
_CLASS_PATH: Final = "spark.driver.extraClassPath"
_JAVA_OPTIONS: Final = "spark.driver.defaultJavaOptions"
SETTINGS: Final[dict[str, str]] = {
    **TEXTS,
    # Delta: its SQL commands and its catalogue.
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Micro-batches are small: 200 shuffle tasks would cost more than the work in them.
    "spark.sql.shuffle.partitions": "2",
    # The state of a Delta log lists a few hundred files: 50 tasks (the default) only add overhead,
    # and a second one already takes a twentieth of the processor time of small merges.
    "spark.databricks.delta.snapshotPartitions": "1",
    # A merge that changes nothing must still move the position in the table's newest commit.
    "spark.databricks.delta.skipRecordingEmptyCommits": "false",
    # Any version whose files still exist can be read, whatever its age.
    AGE_LIMIT: "false",
    # Deletion vectors: a merge rewrites only the changed rows, not the files that hold them.
    "spark.databricks.delta.merge.deletionVectors.persistent": "true",
    # Every table has its own plans: a cache of 100 classes (the default) recompiles every merge.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Source timestamps are instants; their text form is in UTC.
    "spark.sql.session.timeZone": "UTC",
    # A failed cast must not silently become NULL; try_cast is used where a cast may fail.
    "spark.sql.ansi.enabled": "true",
    # Dates before 1582 are proleptic Gregorian both when written and when read.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    # INT96 counts nanoseconds: readers other than Spark misread instants after the year 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A gap in a topic stops the job; it is never skipped.
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "false",
    # Operations and rounds share the cores: neither waits for the other to finish.
    "spark.scheduler.mode": "FAIR",
    # The status command reports more.
    "spark.ui.enabled": "false",
    # For small heaps: saves one pool of collector threads on two cores. Set as a default, so that
    # extraJavaOptions in the configuration are added to it.
    _JAVA_OPTIONS: (
        f"-XX:+UseSerialGC {_GIVEN_BACK} {_LATE_C2} {_AVRO} -Dderby.system.home=/dev/null"
    ),
    # Small work leaves so little behind that the JVM itself would collect it after hours.
    "spark.cleaner.periodicGC.interval": "5min",
    "spark.executor.defaultJavaOptions": _AVRO,
    LOG_LEVEL: "WARN",
    # Spark's progress bars would overwrite ours.
    "spark.ui.showConsoleProgress": "false",
    # The job keeps no state between micro-batches: two batches are enough for inspection.
    "spark.sql.streaming.minBatchesToRetain": "2",
}

LOCAL: Final[dict[str, str]] = {
    # Nobody else connects to the driver; on a cluster its executors do.
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
    # Driver and executor are one process: after two minutes of suspension (a sleeping machine,
    # SIGSTOP) the job must not conclude that its executor is lost, and exit.
    "spark.storage.blockManagerHeartbeatTimeoutMs": str(365 * 24 * 3600 * 1000),
    # The loopback ports serve blocks of rows: only this process may fetch them, no other local
    # user. Spark generates a secret for each run; on a cluster the cluster provides it.
    "spark.authenticate": "true",
}
"""Additional settings where the master is local."""


def build(
    config: Config,
    jars: Iterable[Path],
    java_options: Iterable[str] = (),
    *,
    log_level: str = SETTINGS[LOG_LEVEL],
) -> SparkSession:
    """Start the job's session, with ``jars`` in addition to pyspark's own.

    ``spark.conf`` of the configuration overrides every setting except ``TEXTS``. A JVM that this
    starts gets ``java_options`` too. ``log_level`` is ``IN_COMMANDS`` where people read what else
    is printed.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if runs_here(config):
        # Otherwise Spark resolves the host name and warns, although it uses loopback anyway.
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    builder = (
        SparkSession.builder.appName(f"wal2lake-{config.name}")
        .master(config.spark.master)
        .config("spark.driver.memory", config.spark.driver_memory)
        .config("spark.local.dir", str(scratch_folder(config)))
        .config("spark.sql.warehouse.dir", str(scratch_folder(config) / "warehouse"))
    )
    settings = settings_of(config, log_level)
    if starts_jvm(config):
        settings = for_own_jvm(settings, jars, java_options)
    else:
        settings = {"spark.jars": ",".join(map(str, jars))} | settings
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    quieten(session, scratch_folder(config))
    return session


def settings_of(config: Config, log_level: str = SETTINGS[LOG_LEVEL]) -> dict[str, str]:
    """Return the settings of the job's session, by name, without its class path."""
    own = SETTINGS | {LOG_LEVEL: log_level}
    settings = {**own, **_of_store(config), **config.spark.conf, **TEXTS}
    return LOCAL | settings if runs_here(config) else settings


def _of_store(config: Config) -> dict[str, str]:
    """Return what the session needs for the lake's object store; nothing on a local disk."""
    if is_local(config.lake.path):
        return {}
    from cdc.lake.files.s3_access import spark_settings  # noqa: PLC0415 - as in store_of

    return spark_settings()


def starts_jvm(config: Config) -> bool:
    """Return whether the session runs wholly in a JVM of its own; spark-submit brings one."""
    return runs_here(config) and "PYSPARK_GATEWAY_PORT" not in os.environ


def runs_here(config: Config) -> bool:
    """Return whether Spark works in this machine's JVM, and not on a cluster."""
    return config.spark.master.startswith("local")


def for_own_jvm(
    settings: dict[str, str], jars: Iterable[Path], java_options: Iterable[str]
) -> dict[str, str]:
    """Put the jars on the JVM's own class path, the only one whose classes can be archived."""
    class_path = [*map(str, jars), *filter(None, [settings.get(_CLASS_PATH)])]
    options = " ".join([settings[_JAVA_OPTIONS], *java_options])
    return settings | {_CLASS_PATH: os.pathsep.join(class_path), _JAVA_OPTIONS: options}


def end(session: SparkSession) -> None:
    """Stop the session and return once its JVM has ended by itself; another may then be built."""
    gateway = session.sparkContext._gateway  # noqa: SLF001
    session.stop()
    assert gateway is not None  # noqa: S101 - a session of this process has one
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - pyspark has no other way


def held_for(session: SparkSession, seconds: float) -> None:
    """Let Spark write to a lake in an object store for so long, and no longer."""
    jvm = session._jvm  # noqa: SLF001 - the only way to a class of ours
    assert jvm is not None  # noqa: S101 - a session of this process has one
    jvm.wal2lake.OneWriterLogStore.heldFor(seconds)


def activate(session: SparkSession) -> None:
    """Make ``session`` the active one for the SQL of this thread.

    In the Java thread of a Python thread no session is active. Some SQL is then parsed with Spark's
    defaults instead of ``TEXTS``: an update in a MERGE substituted variables in column names.
    """
    jvm = session._jvm  # noqa: SLF001
    assert jvm is not None  # noqa: S101 - a session of this process has one
    java = getattr(jvm, "org.apache.spark.sql.classic.SparkSession")
    java.setActiveSession(session._jsparkSession)  # noqa: SLF001


def scratch_folder(config: Config) -> Path:
    """Return where Spark keeps intermediate results; make the folder if there is none."""
    folder = config.state_dir / "scratch"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
