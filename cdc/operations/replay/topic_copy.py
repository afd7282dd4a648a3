"""Copies all events that a topic still has, to rebuild a table without a log.

A compacted topic has lost events by design, and keeps the newest event of each key. The removed
ones change nothing in the end, unless a newer event leaves out a value that only they had, or the
wanted place lies before the newest event. Whatever could give a wrong table is refused.
"""

import time
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.decode import is_moved
from cdc.errors import CdcError, ErrorKind
from cdc.events.envelope import NEW_KEY, OLD_KEY
from cdc.events.schema import key_fields
from cdc.kafka.broker import Broker, spark_options
from cdc.kafka.registry_client import SchemaLookup
from cdc.kafka.topic_facts import TopicFacts, topic_facts
from cdc.land.log_table import log_rows

_APART: Final = 4
"""The two halves of a key's change are at most this far apart: between them lie a tombstone and
control records. Halves of different changes are at least five apart."""
_ATTEMPTS: Final = 3
FROM_LOG: Final = "rebuild it from the log: --from log"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCopy:
    """Holds a copy of a topic; ``rows`` have the log's columns, and landings numbered by offset."""

    topic: str
    rows: DataFrame
    facts: TopicFacts


def copy_topic(
    spark: SparkSession, broker: Broker, topic: str, folder: str, *, upto: int | None, span: int
) -> TopicCopy:
    """Copy the whole topic into a Delta table at ``folder``.

    ``upto`` is the offset of a cut, None for the end. A landing spans ``span`` offsets. Raises
    CHAIN_BROKEN where retention or compaction has removed events that are needed.
    """
    facts = topic_facts(broker, topic)
    _refuse_removed(facts)
    for attempt in range(_ATTEMPTS):
        seconds = _copy(spark, broker, facts, folder, span)
        if not facts.compacted or _unchanged(spark, broker, facts, folder):
            break
        if attempt == _ATTEMPTS - 1:
            raise _broken(f"topic {topic} was compacted each time it was read")
    _refuse_removed(topic_facts(broker, topic))
    _refuse_slow(facts, seconds)
    copied = TopicCopy(topic=topic, rows=spark.read.format("delta").load(folder), facts=facts)
    if upto is not None:
        _refuse_superseded(copied, upto)
    return copied


def check(copied: TopicCopy, schemas_of: SchemaLookup, placeholder: str) -> None:
    """Raise CHAIN_BROKEN where events cannot be decoded, or a key's newest event is not enough.

    ``placeholder`` is what the connector sends for a large value that did not change.
    """
    _schemas(copied, "value_schema_id", schemas_of)
    if not copied.facts.compacted:
        return
    keys = _schemas(copied, "key_schema_id", schemas_of)
    forms = [number for number, text in keys.items() if key_fields(text)[0]]
    if len(forms) > 1:
        raise _broken(
            f"topic {copied.topic} is compacted and its keys have {len(forms)} forms",
            "a delete under one form does not remove older events under another",
        )
    _refuse_orphans(copied, placeholder)


def _refuse_removed(facts: TopicFacts) -> None:
    if facts.first > 0:
        raise _broken(
            f"topic {facts.topic} begins at offset {facts.first}: retention removed the rest",
            f"cleanup.policy={facts.policy}",
        )


def _copy(spark: SparkSession, broker: Broker, facts: TopicFacts, folder: str, span: int) -> float:
    """Copy the topic, and return how many seconds that took."""
    started = time.monotonic()
    landing = (F.floor(F.col("offset") / span) + 1).cast("long")
    rows = log_rows(_events(spark, broker, facts), 0).withColumn("landing", landing)
    writer = rows.write.format("delta").option("maxRecordsPerFile", span)
    writer.option("delta.dataSkippingNumIndexedCols", "4").mode("overwrite").save(folder)
    return time.monotonic() - started


def _events(spark: SparkSession, broker: Broker, facts: TopicFacts) -> DataFrame:
    return (
        spark.read.format("kafka")
        .options(**spark_options(broker))
        .option("subscribe", facts.topic)
        .option("startingOffsets", f'{{"{facts.topic}": {{"0": {facts.first}}}}}')
        .option("endingOffsets", f'{{"{facts.topic}": {{"0": {facts.end}}}}}')
        .option("kafka.isolation.level", "read_committed")
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .load()
    )


def _unchanged(spark: SparkSession, broker: Broker, facts: TopicFacts, folder: str) -> bool:
    """Return whether the topic still has the same offsets as its copy.

    If compaction removes events ahead of the reader while it has older ones already, the copy is a
    state that never existed. The older ones are gone by now too, which shows.
    """
    measure = F.count("*"), F.sum(F.hash("offset").cast("decimal(38,0)"))
    now, then = _events(spark, broker, facts), spark.read.format("delta").load(folder)
    return now.agg(*measure).collect() == then.agg(*measure).collect()


def _refuse_slow(facts: TopicFacts, seconds: float) -> None:
    limit = facts.delete_retention_ms / 1000
    if facts.compacted and seconds >= limit:
        raise _broken(
            f"reading topic {facts.topic} took {seconds:.0f} s, but its tombstones stay for "
            f"{limit:g} s only: a delete may be missing",
            remedy=f"raise delete.retention.ms of the topic, or {FROM_LOG}",
        )


def _refuse_superseded(copied: TopicCopy, upto: int) -> None:
    """Raise CHAIN_BROKEN where an event beyond the cut may have compacted one before it away."""
    beyond = copied.rows.where(F.col("offset") > upto)
    oldest = beyond.agg(F.min(F.unix_millis("timestamp"))).collect()[0][0]
    lag = copied.facts.min_compaction_lag_ms
    if not copied.facts.compacted or oldest is None:
        return
    if time.time() * 1000 - oldest >= lag:
        raise _broken(
            f"topic {copied.topic} is compacted: events up to offset {upto} may be gone for "
            "later ones",
            remedy=f"omit --to, or {FROM_LOG}",
        )


def _schemas(copied: TopicCopy, column: str, schemas_of: SchemaLookup) -> dict[int, str]:
    """Return the schemas of the ids in a column; raise CHAIN_BROKEN where one is missing."""
    rows = copied.rows.where(F.col(column).isNotNull()).groupBy(column)
    first_uses = {row[0]: row[1] for row in rows.agg(F.min("offset")).collect()}
    schemas = schemas_of(first_uses)
    missing = sorted(set(first_uses) - set(schemas))
    if missing:
        raise _broken(
            f"the registry lacks schema {missing[0]} of topic {copied.topic}",
            f"first used at offset {first_uses[missing[0]]}",
            "restore the registry's topic: without its schemas no event can be decoded",
        )
    return schemas


def _refuse_orphans(copied: TopicCopy, placeholder: str) -> None:
    """Raise CHAIN_BROKEN for second halves of a key's change that need a missing first half.

    A second half needs the first where it leaves out a value that did not change.
    """
    halves = copied.rows.where("value IS NOT NULL").select(
        "offset",
        is_moved(NEW_KEY).alias("first"),
        is_moved(OLD_KEY).alias("second"),
        _may_hold(placeholder).alias("lacks"),
    )
    before = F.lag(F.struct("offset", "first")).over(Window.orderBy("offset")).alias("before")
    near = F.expr(f"coalesce(before.first AND offset - before.offset <= {_APART}, false)")
    placed = halves.where("first OR second").select("*", before)
    orphans = placed.where(F.col("second") & F.col("lacks") & ~near)
    count, offset = orphans.agg(F.count("*"), F.min("offset")).collect()[0]
    if count:
        raise lacking_values(copied.topic, count, offset)


def lacking_values(topic: str, count: int, offset: int) -> CdcError:
    """Return the error about events whose unchanged values only removed events had."""
    return _broken(
        f"topic {topic}: {count} events leave out values that only compacted events had",
        f"the first at offset {offset}",
    )


def _may_hold(placeholder: str) -> Column:
    """Return whether an event may hold the placeholder, as text, bytes or an array of integers."""
    data = placeholder.encode()
    numbers = b"".join(_zigzag(byte - 256 if byte > 127 else byte) for byte in data)  # noqa: PLR2004
    value = F.col("value")
    return value.contains(F.lit(data)) | value.contains(F.lit(numbers))


def _zigzag(number: int) -> bytes:
    """Return an integer as Avro writes it."""
    rest = number * 2 if number >= 0 else -number * 2 - 1
    encoded = bytearray()
    while rest > 127:  # noqa: PLR2004 - seven bits to a byte
        encoded.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*encoded, rest])


def _broken(message: str, detail: str = "", remedy: str = FROM_LOG) -> CdcError:
    return CdcError(ErrorKind.CHAIN_BROKEN, message, detail=detail, remedy=remedy)
