"""Runs the job's health watch: it repeatedly checks whether changes move, and writes that down.

It is a thread of the job, so that it knows what the rounds do, and a watch that falls silent shows
that the job hangs. ``status`` reads what it writes.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import structlog

from cdc.client.status import components
from cdc.config import Config
from cdc.errors import CdcError
from cdc.job.probe import EVERY_SECONDS, Probe
from cdc.job.topics_seen import TopicsSeen, topics_seen
from cdc.observe.causes import Cause, Facts, SlotFacts, cause
from cdc.observe.hop_motion import (
    Hop,
    HopCounters,
    HopMotion,
    HopProgress,
    Motion,
    hop_motions,
    next_progress,
)
from cdc.source.connector.sessions import slot_facts
from cdc.source.server.connection import OPTIONS, Connection, connect_to_ask
from cdc.stack.process import stack_report
from cdc.state import requests
from cdc.state.directory import StateDir
from cdc.state.health import HopHealth, write
from cdc.state.pipeline import Pipeline

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """Holds what the job knows about itself without asking another server."""

    landed: int  # number of the last landing
    turns: int  # rounds that got somewhere (cdc/apply/rounds/rounds.py)
    working: bool  # whether this process or Spark's executors compute
    alarm: str  # what blocks publishing; empty for nothing
    merging: tuple[str, ...]  # tables that are being brought to the next cut


@contextmanager
def watch_health(
    pipeline: Pipeline, topics: list[str], job: Callable[[], JobFacts]
) -> Iterator[None]:
    """Watch health while the block lasts; ``topics`` are the ones that land."""
    ended = threading.Event()
    with closing(_Probes(pipeline, topics)) as probes:
        watch = _Watch(pipeline.config, probes, job)
        # At once, because the file may be an earlier job's.
        write(pipeline.config.state_dir, [], time.monotonic())
        thread = threading.Thread(target=watch.run, args=(ended,), name="watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()


class _Probes:
    """Runs one probe, with its own thread, for every part besides the job."""

    def __init__(self, pipeline: Pipeline, topics: list[str]) -> None:
        endpoints = pipeline.endpoints
        self._source = _Source(endpoints.source_url, pipeline.name)
        self.slot: Probe[SlotFacts] = Probe("Postgres", self._source.ask)
        self.connector = Probe(
            "Connect", lambda: components.connector(endpoints.connect, pipeline.name)
        )
        self.topics: Probe[TopicsSeen] = Probe(
            "Kafka", lambda: topics_seen(endpoints.kafka, pipeline.name, topics)
        )
        self.registry = Probe("the registry", lambda: components.registry(endpoints.registry))

    def close(self) -> None:
        """Stop all probes."""
        for probe in (self.slot, self.connector, self.topics, self.registry):
            probe.close()


class _Source:
    """Keeps one connection to the source, and opens it again after it was lost."""

    def __init__(self, url: str, slot: str) -> None:
        self._url = url
        self._slot = slot
        self._connection: Connection | None = None

    def ask(self) -> SlotFacts:
        """Return the slot as the source sees it; raise UNREACHABLE where there is no answer."""
        if self._connection is None:
            self._connection = connect_to_ask(
                self._url,
                options=f"{OPTIONS} -c lock_timeout=1s",
            )
        try:
            return slot_facts(self._connection, self._slot)
        except CdcError:
            self._connection.close()
            self._connection = None
            raise


class _Watch:
    """Collects the facts, decides how each hop does, writes that, and logs what has changed."""

    def __init__(self, config: Config, probes: _Probes, job: Callable[[], JobFacts]) -> None:
        self._config = config
        self._probes = probes
        self._job = job
        self._progress: HopProgress | None = None
        self._motions: dict[Hop, Motion] = {}

    def run(self, ended: threading.Event) -> None:
        """Look every few seconds until ``ended`` is set."""
        while not ended.is_set():
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - the run may be shutting down around it
                logger.warning("the watch could not look", error=type(error).__name__)
            ended.wait(EVERY_SECONDS)

    def _look(self) -> None:
        job = self._job()
        slot, no_source = self._probes.slot.latest()
        connector, no_connect = self._probes.connector.latest()
        topics, no_kafka = self._probes.topics.latest()
        _, no_registry = self._probes.registry.latest()
        seen = HopCounters(
            at=time.monotonic(),
            sent=topics.committed if topics else None,
            landed=job.landed,
            turns=job.turns,
            decoding=slot is not None and slot.working,
            working=job.working,
        )
        self._progress = next_progress(self._progress, seen)
        failures = {
            "source": no_source,
            "connect": no_connect,
            "kafka": no_kafka,
            "registry": no_registry,
        }
        facts = Facts(
            silent={part: failure for part, failure in failures.items() if failure},
            slot=slot,
            connector=(connector.state, connector.reason) if connector else None,
            restarted=self._restarted(self._progress),
            missing=topics.missing if topics else (),
            unended=topics is not None and topics.unended,
            alarm=job.alarm,
            held=self._held(),
            merging=job.merging,
            disk=components.disk(self._config.state_dir),
        )
        hops = [_health(hop, facts) for hop in hop_motions(self._progress)]
        self._write(hops, registry=no_registry, unnoted=slot.unnoted if slot else "")

    def _restarted(self, progress: HopProgress) -> str:
        since = progress.now - progress.sent_at + EVERY_SECONDS
        return stack_report.connector_note(StateDir(self._config.state_dir), since)

    def _held(self) -> tuple[str, ...]:
        folder = requests.directory(self._config.state_dir)
        return tuple(request.id for request in requests.pending(folder, time.time()))

    def _write(self, hops: list[HopHealth], **more: str) -> None:
        for health in hops:
            if self._motions.get(health.hop, Motion.MOVES) != health.motion:
                log = logger.info if health.motion is Motion.MOVES else logger.warning
                log("hop", hop=health.hop.value, motion=health.motion.value)
        self._motions = {health.hop: health.motion for health in hops}
        write(self._config.state_dir, hops, time.monotonic(), **more)


def _health(hop: HopMotion, facts: Facts) -> HopHealth:
    why = Cause("", "")
    if hop.motion is Motion.STANDS:
        why = cause(hop.hop, facts)
    elif hop.motion is Motion.BEHIND and hop.hop is Hop.APPLY:
        why = Cause(", ".join(facts.merging), "")
    return HopHealth(
        hop=hop.hop,
        motion=hop.motion,
        seconds=hop.seconds,
        why=why.why,
        remedy=why.remedy,
    )
