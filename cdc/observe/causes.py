"""Decide why a hop stands still and what to do, from what every part reports."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from cdc.observe.hop_motion import LIMIT_SECONDS, Hop

DEBEZIUM: Final = "Debezium"
RUNNING: Final = "RUNNING"
_NEW_EPOCH: Final = "run wal2lake up --new-epoch, then wal2lake resnapshot --all"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotFacts:
    """Describes the replication slot, and the sessions of its reader."""

    exists: bool
    lost: bool = False
    pid: int | None = None
    application: str = ""
    waits_for: str = ""  # wait event of the walsender that reads the slot
    blocked_by: str = ""  # pids whose locks the connector's sessions wait for
    working: bool = False  # Postgres computes for the connector
    heartbeat_seconds: float = 0.0  # age of the heartbeat row, by the source's clock
    has_publication: bool = True  # whether a publication has the slot's name
    unnoted: str = ""  # why changes of a structure may not be noted


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Holds one look at every part; ``silent`` describes those that did not answer."""

    silent: dict[str, str]  # by part: source, kafka, connect, registry
    slot: SlotFacts | None
    connector: tuple[str, str] | None  # state and reason
    restarted: str  # why the supervisor restarted the connector since it last made progress
    missing: tuple[str, ...]  # topics that the connector writes to and that do not exist
    unended: bool  # whether a topic has records after the last committed one
    alarm: str
    held: tuple[str, ...]  # requests that keep cuts from being published
    merging: tuple[str, ...]  # tables that a round is applying
    disk: str  # which disk has too little space


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a hop stands still, as a statement, and the remedy, as an imperative."""

    why: str
    remedy: str


def cause(hop: Hop, facts: Facts) -> Cause:
    """Return the first cause that the facts show, or one that says that none is known."""
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
            "records wait behind a Kafka transaction that never ended",
            "see the worker's log, and docs/operations.md, A transaction without an end",
        )
    yield Cause(
        "every part answers and the connector is reported as running, but nothing arrives from it",
        "see the worker's log; run wal2lake down and wal2lake up to restart the connector",
    )


def _land(facts: Facts) -> Iterator[Cause]:
    yield from _silent(facts, "kafka")
    yield from _disk(facts)
    yield Cause(
        "the landing query runs but does not land the events that Kafka has",
        "see the job's log; run wal2lake down and wal2lake up to continue from the log's position",
    )


def _apply(facts: Facts) -> Iterator[Cause]:
    if facts.alarm:
        why, _, remedy = facts.alarm.partition(" remedy: ")
        yield Cause(why.rstrip("; "), remedy or "see the job's log")
    if facts.held:
        yield Cause(
            f"cuts are held for request {', '.join(facts.held)} of a verify or a reading",
            "wait until it ends or its request expires; run wal2lake operations to see readings",
        )
    yield from _disk(facts)
    if facts.merging:
        yield Cause(
            f"{', '.join(facts.merging)} is being brought to the next cut, but Spark is idle",
            "see the job's log and check the lake's storage; run wal2lake down and wal2lake up",
        )
    yield Cause(
        "events have landed but are not applied up to a cut",
        "see the job's log; run wal2lake down and wal2lake up",
    )


def _silent(facts: Facts, part: str) -> Iterator[Cause]:
    if part in facts.silent:
        yield Cause(
            facts.silent[part], f"check that {_NAMES[part]} runs and can be reached from the job"
        )


def _missing(facts: Facts) -> Iterator[Cause]:
    if facts.missing:
        yield Cause(
            f"the broker has no topic {', '.join(facts.missing)}, which the connector writes to",
            "run wal2lake down and wal2lake up, which creates it or says what is lost",
        )


def _unreadable(facts: Facts) -> Iterator[Cause]:
    slot = facts.slot
    if slot is not None and (slot.lost or not slot.exists):
        yield Cause(
            "the slot was lost" if slot.exists else "there is no slot",
            "run wal2lake down and wal2lake up, which says what is lost",
        )
    elif slot is not None and slot.pid is not None and not _is_connector(slot):
        yield Cause(
            f"the slot is read by pid {slot.pid} ({slot.application or 'unnamed'}), "
            "which is not the connector",
            "end that session: a slot has one reader only",
        )
    if slot is not None and not slot.has_publication:
        yield Cause(
            "the source has no publication with the slot's name: it was renamed or dropped",
            "give it that name again; Postgres will not send the changes made meanwhile (up to "
            f"version 17) or leaves them out, so then {_NEW_EPOCH}",
        )


def _connector(facts: Facts) -> Iterator[Cause]:
    if facts.connector is not None and facts.connector[0] != RUNNING:
        state, reason = facts.connector
        yield Cause(f"the connector is {state}{f': {reason}' if reason else ''}", remedy_of(state))
    elif facts.restarted:
        yield Cause(facts.restarted, remedy_of("FAILED"))


def remedy_of(state: str) -> str:
    """Return what to do about a connector in a state other than RUNNING."""
    if state in {"PAUSED", "STOPPED", "missing"}:
        return "run wal2lake down and wal2lake up to start it again"
    if state == "FAILED":
        return (
            "wait, because wal2lake up keeps restarting it; if it still fails, run wal2lake down, "
            f"then {_NEW_EPOCH}"
        )
    return "see the worker's log: the worker runs no task of it"


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
            "nobody reads the slot, but the connector is reported as running",
            "wait two minutes for wal2lake up to restart it; see the worker's log",
        )
    if slot.heartbeat_seconds > LIMIT_SECONDS:
        gone = math.isinf(slot.heartbeat_seconds)
        since = "its row is gone" if gone else f"for {slot.heartbeat_seconds:.0f} s"
        yield Cause(
            f"the connector does not update wal2lake.heartbeat: {since}",
            "check its role's permission and the worker's log; run wal2lake down and wal2lake up "
            "to create the row again",
        )
    if slot.waits_for == "WalSenderWriteData":
        yield Cause(
            f"the connector does not read what the source sends (pid {slot.pid})",
            "see the worker's log and check its memory",
        )
    if slot.pid is not None:
        yield Cause(
            f"the source's pid {slot.pid} sends nothing from the slot to the connector",
            f"check that it is not stopped; run SELECT pg_terminate_backend({slot.pid}) to restart"
            " it",
        )


def _disk(facts: Facts) -> Iterator[Cause]:
    if facts.disk:
        yield Cause(facts.disk, "free space there")


def _is_connector(slot: SlotFacts) -> bool:
    """Return whether the connector reads the slot; a name hidden from our role counts as its."""
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
