"""A batch leaves nothing in the heap, since a job runs for months."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.apply.changes.decode import decode_table
from cdc.events.schema import table_schema_from_avro
from cdc.tables import TableId, TableMode
from tests.events.recorded import LOG_COLUMNS, recording, table_topic
from tests.local_spark import frame_of

pytestmark = pytest.mark.spark

PARSED = "org.apache.avro.Schema$RecordSchema"
TASKS = 20
"""Each task parses the schemas anew, as the tasks of every batch do."""
BATCHES = 8


def reachable(spark: SparkSession, name: str) -> int:
    """Return the number of reachable objects of a class; skip the test without a JDK's tools."""
    jvm: Any = spark._jvm
    tool = Path(jvm.java.lang.System.getProperty("java.home")) / "bin" / "jcmd"
    if not tool.exists():
        pytest.skip(f"{tool} is not there: this Java has no tools")
    pid = jvm.java.lang.ProcessHandle.current().pid()
    command = [str(tool), str(pid), "GC.class_histogram"]  # collects garbage first
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in printed.splitlines()]
    return sum(int(line[1]) for line in lines if line[3:4] == [name])


def test_no_batch_leaves_its_schemas_behind(spark: SparkSession) -> None:
    """Avro's fast reader would keep every parsed schema for the JVM's lifetime."""
    recorded, topic = recording("tables"), table_topic("customers")
    written = recorded.written(topic)
    schema = table_schema_from_avro(
        written[max(written)],
        table=TableId("public", "customers"),
        key=("id",),
        mode=TableMode.KEYED,
    )
    rows = [message.row() for message in recorded.of(topic)]

    def batches(number: int) -> None:
        for _ in range(number):
            frame = frame_of(spark, rows, LOG_COLUMNS).repartition(TASKS)
            decoded = decode_table(frame, written, schema, placeholder=recorded.placeholder)
            decoded.write.format("noop").mode("overwrite").save()

    batches(1)
    before = reachable(spark, PARSED)
    assert before > 0
    batches(BATCHES)
    # The fast reader keeps more than one for each task. Caches that a collection may or may not
    # empty hold some dozens at any time.
    assert reachable(spark, PARSED) < before + BATCHES * TASKS


def test_avros_fast_reader_is_off(spark: SparkSession) -> None:
    """Tested also where the test above is skipped."""
    jvm: Any = spark._jvm
    assert jvm.org.apache.avro.generic.GenericData.get().isFastReaderEnabled() is False
