"""Runs the landing query: it appends each change event once, unchanged, to the Delta table ``log``.

The query starts from the log's own position, with a new checkpoint for each run. So a checkpoint
that was lost, restored or shared cannot make it skip or repeat an event.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from cdc.config import Job
from cdc.errors import CdcError
from cdc.failpoints import Failpoint, reach
from cdc.kafka.broker import Broker, spark_options
from cdc.lake.files.delta import delta_table
from cdc.lake.files.unreachable import store_error
from cdc.lake.records.expiry import Expired
from cdc.lake.table.noted_landings import Ranges, with_landing
from cdc.lake.table.positions import NOTHING, LandedPosition
from cdc.lake.upkeep.erasure import newest_time
from cdc.lake.upkeep.kept_versions import HOUR
from cdc.lake.upkeep.maintenance import Maintainer, expire
from cdc.land.arrow_rows import arrow_landing, arrow_rows
from cdc.land.landing import Landing
from cdc.land.log_files import LogFiles
from cdc.land.log_table import landings, log_rows, summary
from cdc.land.log_writer import LogWriter
from cdc.land.micro_batches import MicroBatch, MicroBatches
from cdc.land.small_batches import MOST_RECORDS, SmallBatches
from cdc.waiting import Every

T = TypeVar("T")
Offsets = Mapping[str, int]
Rest = Callable[[Offsets, Offsets, threading.Event], None]
POLLING_DELAY: Final = "spark.sql.streaming.pollingDelay"  # milliseconds between empty polls
logger = structlog.get_logger(__name__)


def starting_offsets(topics: list[str], position: LandedPosition) -> str:
    """Return Spark's ``startingOffsets``: after the last landed event, or the earliest if new."""
    earliest = -2
    offsets = {
        topic: {"0": position.offsets[topic] + 1 if topic in position.offsets else earliest}
        for topic in topics
    }
    return json.dumps(offsets)


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingHooks:
    """Hold the functions that the landing query calls."""

    landed: Callable[[Landing], None]
    """Called after every commit."""
    look: Callable[[Collection[str]], None]
    """Called after each read from Kafka, with the topics of which there are events; raises if
    something is wrong with them."""
    read: Callable[[Mapping[str, range]], pa.Table | None] = lambda _: None
    """Called with the offsets of a small micro-batch, by topic; returns its records as Spark's
    Kafka source has them, None where only Spark can read them."""
    expired: Callable[[], Expired] = dict
    """Called once per vacuum interval; returns which events of the log are no longer needed."""
    timed: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered while a micro-batch lands."""
    rest: Rest = lambda _before, _after, _ended: None
    """Called after a micro-batch with the offsets of the last events in the log, by topic, before
    and after it; may wait until there is something to land, or the event is set."""


class Lander:
    """Runs the landing query; ``position`` is the position of its last commit."""

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        position: LandedPosition,
        policy: Job,
        *,
        notes_topic: str,
        hooks: LandingHooks,
    ) -> None:
        """Prepare to append to the log at ``path``, starting at ``position``."""
        self._spark = spark
        self._path = path
        self.position = position
        self._hooks = hooks
        self._notes_topic = notes_topic
        self.refused: CdcError | OSError | None = None
        """The error that ended the query, if it is more precise than Spark's."""
        self._policy = policy
        self._expiry = Every(policy.vacuum_every_hours * HOUR)
        self._maintainer = Maintainer(path, policy)
        self._writer = LogWriter(spark, path)
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="log-files")
        self._files = LogFiles(path, policy, self._writer.appender, self._executor)
        self._small = SmallBatches(MOST_RECORDS if policy.local_events else 0)
        self._query: StreamingQuery | None = None
        self._stopping = threading.Event()
        self._waiting: deque[Callable[[], None]] = deque()

    def start(
        self,
        topics: list[str],
        *,
        broker: Broker,
        checkpoint: str,
    ) -> StreamingQuery:
        """Start one query for all topics; it ends only by ``stop`` or by an error.

        Spark's trigger uses the wall clock: if that were set back by an hour, nothing would land
        for an hour. So the query runs without pauses of Spark's, and pauses by a monotonic clock.
        """
        pause = max(1, int(self._policy.trigger_seconds * 1000))
        self._spark.conf.set(POLLING_DELAY, str(pause))
        events = self._events(topics, broker)
        begin = {topic: last + 1 for topic, last in self.position.offsets.items()}
        batches = MicroBatches(Path(checkpoint), begin)
        paced = partial(self._paced, batches)
        writer = events.writeStream.foreachBatch(paced).queryName("land")
        self._query = (
            writer.option("checkpointLocation", checkpoint)
            .trigger(processingTime="0 seconds")
            .start()
        )
        return self._query

    def _events(self, topics: list[str], broker: Broker) -> DataFrame:
        reader = (
            self._spark.readStream.format("kafka")
            .options(**spark_options(broker))
            .option("subscribe", ",".join(topics))
            .option("startingOffsets", starting_offsets(topics, self.position))
            .option("kafka.isolation.level", "read_committed")
            .option("failOnDataLoss", "true")
            .option("includeHeaders", "true")
            .option("maxOffsetsPerTrigger", self._policy.max_events_per_batch)
        )
        return reader.load()

    def stop(self) -> None:
        """Stop the query, even during a pause."""
        self._stopping.set()
        if self._query is not None:
            self._query.stop()
        self._executor.shutdown()

    def after_landing(self, action: Callable[[], T]) -> Future[T]:
        """Call ``action`` after the next landing, in the thread that writes the log.

        An error of it ends the query too: the log may have what ``position`` lacks.
        """
        result: Future[T] = Future()

        def act() -> None:
            try:
                result.set_result(action())
            except BaseException as error:
                result.set_exception(error)
                raise

        self._waiting.append(act)
        return result

    def forget(self, places: Expired, read: Offsets) -> float:
        """Delete the events up to ``places``; return the time of the version that lacks them.

        ``read`` has offsets, by topic, up to which there is nothing more to land: the log continues
        after them, whatever Kafka has deleted. Called by the thread that writes the log.
        """
        self._files.settle(self.position)
        last = self.position.offsets
        offsets = {topic: max(offset, last.get(topic, -1)) for topic, offset in read.items()}
        self.position = replace(self.position, offsets={**last, **offsets})
        self._expire_up_to(places)
        return newest_time(self._path, delta_table(self._path).version())

    def read(self) -> dict[str, int]:
        """Return the end offset of each topic that the running query has read, exclusive.

        It includes Kafka records that are not events, such as markers of Kafka's transactions.
        """
        progress = self._query.lastProgress if self._query else None
        if progress is None:
            return {}
        [source] = json.loads(progress.json)["sources"]
        return {topic: partitions["0"] for topic, partitions in source["endOffset"].items()}

    def _paced(self, batches: MicroBatches, events: DataFrame, batch_id: int) -> None:
        began, before = time.monotonic(), self.position.offsets
        try:
            with self._hooks.timed():
                self.land(events, batches.batch(batch_id))
        except Exception as error:
            self.refused = store_error(error) or self.refused
            raise
        self._stopping.wait(began + self._policy.trigger_seconds - time.monotonic())
        self._hooks.rest(before, self.position.offsets, self._stopping)

    def land(self, events: DataFrame, batch: MicroBatch | None = None) -> None:
        """Append one micro-batch and its end position in one commit.

        ``batch`` says which records it has, None where that is unknown. A small one is brought
        here, and its rows go on with the landing.
        """
        number = self.position.landing + 1
        most = None if batch is None else batch.most_records
        found = self._small.rows(events, most, partial(self._read_here, batch))
        if found is None:
            self._land_by_spark(events, number)
        else:
            self._land_here(arrow_rows(found, number, datetime.now(UTC)))

    def _read_here(self, batch: MicroBatch | None) -> pa.Table | None:
        return self._hooks.read(batch.ranges) if batch is not None and batch.exact else None

    def _land_here(self, rows: pa.Table) -> None:
        landing = arrow_landing(rows) if len(rows) else None
        self._refuse_other_topics(landing.topics if landing else ())
        if landing is not None:
            self._append(landing, partial(self._writer.append, rows))

    def _land_by_spark(self, events: DataFrame, number: int) -> None:
        rows = log_rows(events, number).persist()
        try:
            batch = landings(summary(rows))
            self._refuse_other_topics({topic for landing in batch for topic in landing.topics})
            for landing in batch:  # one, or none for an empty micro-batch
                write = partial(self._writer.append_frame, rows, events=landing.count)
                self._append(landing, write)
        finally:
            rows.unpersist()

    def _refuse_other_topics(self, topics: Collection[str]) -> None:
        try:
            self._hooks.look(topics)
        except CdcError as error:
            self.refused = error
            raise

    def _append(self, landing: Landing, write: Callable[[str], None]) -> None:
        last = {topic: span.last for topic, span in landing.topics.items()}
        position = replace(
            self.position,
            landing=landing.number,
            offsets={**self.position.offsets, **last},
            noted=self._noted(landing),
        )
        reach(Failpoint.BEFORE_LOG_APPEND)
        write(position.metadata())
        reach(Failpoint.AFTER_LOG_APPEND)
        self.position = position
        logger.info("landed", landing=landing.number, events=landing.count)
        self._hooks.landed(landing)
        # Done by the thread that writes the log, so that no other commit can intervene.
        if self._expiry.is_due():
            self._expire_up_to(self._hooks.expired())
        self._files.landed(self.position)
        self._maintainer.committed(self._spark, self.position.metadata(), self._files.left)
        while self._waiting:
            self._waiting.popleft()()

    def _noted(self, landing: Landing) -> Ranges:
        before = self.position.noted
        is_noted = self._notes_topic in landing.topics
        return with_landing(before, landing.number) if is_noted else before

    def _expire_up_to(self, places: Expired) -> None:
        """Delete events that are no longer needed, in a commit whose position records it."""
        before = self.position.expired
        wanted = {**before, **places}
        more = {t: place for t, place in wanted.items() if place[0] > before.get(t, NOTHING)[0]}
        if not more:
            return
        position = replace(self.position, expired={**before, **more})
        expire(self._spark, self._path, position.metadata(), more)
        self.position = position
        logger.info("expired", topics=len(more))
