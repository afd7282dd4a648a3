"""The job's own watch: again and again it looks whether changes move, and writes down what it saw.

It is a thread of the job, so that it knows what the rounds do; that it is not heard of any more
tells of a job that hangs. ``status`` reads what it wrote.
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
from cdc.observe.hops import Hop, Motion, Moving, Progress, Seen, moving, step
from cdc.source.connector.sessions import slot_facts
from cdc.source.server.connection import OPTIONS, Connection, connect_to_ask
from cdc.stack.process import report
from cdc.state import requests
from cdc.state.directory import StateDir
from cdc.state.endpoints import Endpoints
from cdc.state.health import HopHealth, write

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """What the job knows of itself without asking anybody."""

    landed: int  # number of the last landing
    turns: int
    working: bool
    alarm: str
    merging: tuple[str, ...]


@contextmanager
def watched(
    config: Config, endpoints: Endpoints, topics: list[str], job: Callable[[], JobFacts]
) -> Iterator[None]:
    """Look as long as the block lasts; ``topics`` are those that land."""
    ended = threading.Event()
    with closing(_Parts(config, endpoints, topics)) as asked:
        watch = _Watch(config, asked, job)
        write(config.state_dir, [], time.monotonic())  # by this process, from the beginning
        thread = threading.Thread(target=watch.run, args=(ended,), name="watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()


class _Parts:
    """Every part besides the job, each asked by a thread of its own."""

    def __init__(self, config: Config, endpoints: Endpoints, topics: list[str]) -> None:
        self._source = _Source(endpoints.source_url, config.name)
        self.slot: Probe[SlotFacts] = Probe("Postgres", self._source.ask)
        self.connector = Probe(
            "Connect", lambda: components.connector(endpoints.connect, config.name)
        )
        self.topics: Probe[TopicsSeen] = Probe(
            "Kafka", lambda: topics_seen(endpoints.kafka, config.name, topics)
        )
        self.registry = Probe("the registry", lambda: components.registry(endpoints.registry))

    def close(self) -> None:
        for probe in (self.slot, self.connector, self.topics, self.registry):
            probe.close()


class _Source:
    """One connection to the source, made anew where it was lost."""

    def __init__(self, url: str, slot: str) -> None:
        self._url = url
        self._slot = slot
        self._connection: Connection | None = None

    def ask(self) -> SlotFacts:
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
    """Looks, decides, writes, and says in the log what has changed."""

    def __init__(self, config: Config, asked: _Parts, job: Callable[[], JobFacts]) -> None:
        self._config = config
        self._asked = asked
        self._job = job
        self._progress: Progress | None = None
        self._motions: dict[Hop, Motion] = {}

    def run(self, ended: threading.Event) -> None:
        while not ended.is_set():
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - what it looks at may be half gone
                logger.warning("the watch could not look", error=type(error).__name__)
            ended.wait(EVERY_SECONDS)

    def _look(self) -> None:
        job = self._job()
        slot, no_source = self._asked.slot.latest()
        connector, no_connect = self._asked.connector.latest()
        topics, no_kafka = self._asked.topics.latest()
        _, no_registry = self._asked.registry.latest()
        seen = Seen(
            at=time.monotonic(),
            sent=topics.committed if topics else None,
            landed=job.landed,
            turns=job.turns,
            decoding=slot is not None and slot.working,
            working=job.working,
        )
        self._progress = step(self._progress, seen)
        answers = {
            "source": no_source,
            "connect": no_connect,
            "kafka": no_kafka,
            "registry": no_registry,
        }
        facts = Facts(
            silent={part: said for part, said in answers.items() if said},
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
        hops = [_health(each, facts) for each in moving(self._progress)]
        self._tell(hops, registry=no_registry, unnoted=slot.unnoted if slot else "")

    def _restarted(self, progress: Progress) -> str:
        since = progress.now - progress.sent_at + EVERY_SECONDS
        return report.connector_note(StateDir(self._config.state_dir), since)

    def _held(self) -> tuple[str, ...]:
        folder = requests.directory(self._config.state_dir)
        return tuple(request.id for request in requests.pending(folder, time.time()))

    def _tell(self, hops: list[HopHealth], **more: str) -> None:
        for each in hops:
            if self._motions.get(each.hop, Motion.MOVES) != each.motion:
                say = logger.info if each.motion is Motion.MOVES else logger.warning
                say("hop", hop=each.hop.value, motion=each.motion.value)
        self._motions = {each.hop: each.motion for each in hops}
        write(self._config.state_dir, hops, time.monotonic(), **more)


def _health(found: Moving, facts: Facts) -> HopHealth:
    known = Cause("", "")
    if found.motion is Motion.STANDS:
        known = cause(found.hop, facts)
    elif found.motion is Motion.BEHIND and found.hop is Hop.APPLY:
        known = Cause(", ".join(facts.merging), "")
    return HopHealth(
        hop=found.hop,
        motion=found.motion,
        seconds=found.seconds,
        why=known.why,
        remedy=known.remedy,
    )
