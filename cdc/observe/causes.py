"""Why a hop stands still, and what to do: decided from what every part says of itself."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from cdc.observe.hops import LIMIT_SECONDS, Hop

DEBEZIUM: Final = "Debezium"
RUNNING: Final = "RUNNING"
_ANEW: Final = "wal2lake up --new-epoch, then wal2lake resnapshot --all"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotFacts:
    """The slot, and the sessions of who reads it."""

    exists: bool
    lost: bool = False
    pid: int | None = None
    application: str = ""
    waits_for: str = ""  # what Postgres says that the process which sends from it waits for
    blocked_by: str = ""  # pids whose locks the connector's sessions wait for
    working: bool = False  # Postgres computes for the connector
    heartbeat_seconds: float = 0.0  # age of the row, by the source's clock
    published: bool = True  # whether there is a publication of the slot's name
    unnoted: str = ""  # why changes of a structure may not be noted


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One look at every part; ``silent`` has what is known of those that did not answer."""

    silent: dict[str, str]  # by part: source, kafka, connect, registry
    slot: SlotFacts | None
    connector: tuple[str, str] | None  # state and reason
    restarted: str  # what the supervisor said of the connector since it was seen to move
    missing: tuple[str, ...]  # topics that the connector writes to, and that are not there
    unended: bool  # a topic has records beyond the committed ones
    alarm: str
    held: tuple[str, ...]  # requests that keep cuts from being published
    merging: tuple[str, ...]  # tables that a round is at
    disk: str  # where there is too little room


@dataclass(frozen=True, slots=True)
class Cause:
    """``why`` is a statement, ``remedy`` what to do."""

    why: str
    remedy: str


def cause(hop: Hop, facts: Facts) -> Cause:
    """The first that is known, and else that none is."""
    return next(_CAUSES[hop](facts))


def _capture(facts: Facts) -> Iterator[Cause]:
    yield from _silent(facts, "kafka")
    yield from _missing(facts)
    yield from _silent(facts, "source")
    yield from _unreadable(facts)
    yield from _silent(facts, "connect")
    yield from _silent(facts, "registry")
    yield from _connector(facts)
    yield from _disk(facts)
    yield from _sessions(facts)
    if facts.unended:
        yield Cause(
            "there are records behind a transaction of Kafka that has no end",
            "see the worker's log; docs/operations.md, A transaction without an end",
        )
    yield Cause(
        "every part answers and the connector is said to run, and nothing of it arrives",
        "see the worker's log; wal2lake down and wal2lake up start the connector again",
    )


def _land(facts: Facts) -> Iterator[Cause]:
    yield from _silent(facts, "kafka")
    yield from _disk(facts)
    yield Cause(
        "the landing query neither lands what Kafka has nor ends",
        "see the job's log; wal2lake down and wal2lake up, it goes on from the log's position",
    )


def _apply(facts: Facts) -> Iterator[Cause]:
    if facts.alarm:
        why, _, remedy = facts.alarm.partition(" remedy: ")
        yield Cause(why.rstrip("; "), remedy or "see the job's log")
    if facts.held:
        yield Cause(
            f"cuts are held for request {', '.join(facts.held)} of a verify or a reading",
            "wait until it ends or its request expires; wal2lake operations shows readings",
        )
    yield from _disk(facts)
    if facts.merging:
        yield Cause(
            f"{', '.join(facts.merging)} is being brought to the next cut, and nothing is computed",
            "see the job's log and the lake's storage; wal2lake down and wal2lake up",
        )
    yield Cause(
        "what has landed is not brought to a cut",
        "see the job's log; wal2lake down and wal2lake up",
    )


def _silent(facts: Facts, part: str) -> Iterator[Cause]:
    if part in facts.silent:
        yield Cause(
            facts.silent[part], f"see that {_NAMES[part]} runs and can be reached from the job"
        )


def _missing(facts: Facts) -> Iterator[Cause]:
    if facts.missing:
        yield Cause(
            f"the broker has no topic {', '.join(facts.missing)}, which the connector writes to",
            "wal2lake down and wal2lake up make it, or say what is lost",
        )


def _unreadable(facts: Facts) -> Iterator[Cause]:
    slot = facts.slot
    if slot is not None and (slot.lost or not slot.exists):
        yield Cause(
            "the slot was lost" if slot.exists else "there is no slot",
            "wal2lake down and wal2lake up say what of it is lost",
        )
    elif slot is not None and slot.pid is not None and not _is_connector(slot):
        yield Cause(
            f"the slot is read by pid {slot.pid} ({slot.application or 'unnamed'}), "
            "which is not the connector",
            "end that reader: a slot has one",
        )
    if slot is not None and not slot.published:
        yield Cause(
            "the source has no publication of the slot's name: it was renamed or dropped",
            "name it so again; what was written meanwhile Postgres refuses to send (up to 17) or "
            f"leaves out: {_ANEW}",
        )


def _connector(facts: Facts) -> Iterator[Cause]:
    if facts.connector is not None and facts.connector[0] != RUNNING:
        state, reason = facts.connector
        yield Cause(f"the connector is {state}{f': {reason}' if reason else ''}", remedy_of(state))
    elif facts.restarted:
        yield Cause(facts.restarted, remedy_of("FAILED"))


def remedy_of(state: str) -> str:
    """What to do about a connector in a state that is not RUNNING."""
    if state in {"PAUSED", "STOPPED", "missing"}:
        return "wal2lake down and wal2lake up let it run again"
    if state == "FAILED":
        return (
            f"wal2lake up restarts it again and again; where it stays so, wal2lake down and {_ANEW}"
        )
    return "see the worker's log: it has no task for it"


def _sessions(facts: Facts) -> Iterator[Cause]:
    slot = facts.slot
    if slot is None:
        return
    if slot.blocked_by:
        yield Cause(
            f"the connector waits in the source for a lock that pid {slot.blocked_by} holds",
            "end that transaction, or SELECT pg_terminate_backend(pid)",
        )
    if slot.pid is None:
        yield Cause(
            "nobody reads the slot, and the connector is said to run",
            "wal2lake up restarts it within two minutes; see the worker's log",
        )
    if slot.heartbeat_seconds > LIMIT_SECONDS:
        gone = math.isinf(slot.heartbeat_seconds)
        since = "its row is gone" if gone else f"for {slot.heartbeat_seconds:.0f} s"
        yield Cause(
            f"the connector does not update wal2lake.heartbeat: {since}",
            "see that its role may, and the worker's log; wal2lake down and wal2lake up make it",
        )
    if slot.waits_for == "WalSenderWriteData":
        yield Cause(
            f"the connector does not take what the source sends (pid {slot.pid})",
            "see the worker's log and its memory",
        )
    if slot.pid is not None:
        yield Cause(
            f"the source's pid {slot.pid} sends nothing from the slot to the connector",
            f"see that it is not stopped; SELECT pg_terminate_backend({slot.pid}) begins it anew",
        )


def _disk(facts: Facts) -> Iterator[Cause]:
    if facts.disk:
        yield Cause(facts.disk, "make room there")


def _is_connector(slot: SlotFacts) -> bool:
    """A name that is not shown to our role is taken for the connector's."""
    return not slot.application or slot.application.startswith(DEBEZIUM)


_NAMES: Final = {
    "source": "Postgres",
    "kafka": "Kafka",
    "connect": "the Connect worker",
    "registry": "the schema registry",
}
_CAUSES: Final[dict[Hop, Callable[[Facts], Iterator[Cause]]]] = {
    Hop.CAPTURE: _capture,
    Hop.LAND: _land,
    Hop.APPLY: _apply,
}
