"""What is not well, each with what to do: decided from what the parts say."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from cdc.client.status.status import Status, TableStatus
from cdc.errors import POLICY, ErrorKind
from cdc.observe.causes import DEBEZIUM, remedy_of
from cdc.observe.hops import Hop, Motion
from cdc.source.notes import unnoted
from cdc.source.server.slot import NEW_EPOCH
from cdc.stack.process import report
from cdc.state.endpoints import NOT_UP
from cdc.state.health import HopHealth
from cdc.state.job_state import RELOADING
from cdc.tables import TableState

FOUND: Final[dict[ErrorKind, str]] = {
    ErrorKind.CHAIN_BROKEN: "the slot is gone, or lost what it needs",
    ErrorKind.DISK_FULL: "too little room for the state directory",
    ErrorKind.SERVER_FAILED: "job, connector or a server of ours does not run, or nobody reads "
    "the slot",
    ErrorKind.STANDS_STILL: "something of the way of a change does not move, or the job hangs",
    ErrorKind.UNREACHABLE: "source, Kafka, Connect or the registry does not answer",
    ErrorKind.TABLE_STOPPED: "a table is stopped or degraded, or may have to be since changes of "
    "its structure are not noted, and the others go on",
    ErrorKind.STARTING: "`up`, the job or the first snapshot is under way",
    ErrorKind.BEHIND: "all moves, and what is published is more than a minute old",
}
"""What ``status`` looks for. Before them all comes an error that ``wal2lake up`` ended with."""
WORST_FIRST: Final = tuple(FOUND)
PASSING: Final = frozenset({ErrorKind.TABLE_STOPPED, ErrorKind.STARTING, ErrorKind.BEHIND})
"""What starting again would not put right: a health check passes over it."""
SILENT_SECONDS: Final = 30.0
"""The job's watch looks more often: one that said nothing for so long hangs."""
_APPLIES: Final = frozenset({"applying", RELOADING})
_OLD_SECONDS: Final = 60.0
_RESTARTED_TOO_OFTEN: Final = 3
_AGAIN: Final = "wal2lake down, then wal2lake up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``what`` is a statement in lower case."""

    kind: ErrorKind
    what: str
    remedy: str


def findings(now: Status) -> list[Finding]:
    """The worst first; none where all is well."""
    found = _of_start(now) or [*_of_parts(now), *_of_way(now)]
    found += _of_tables(now.tables)
    return sorted(found, key=_badness)


def live(found: Iterable[Finding]) -> list[Finding]:
    """Those that a health check is about."""
    return [each for each in found if each.kind not in PASSING]


def exit_code(found: list[Finding]) -> int:
    """Of the worst; 0 without any."""
    return POLICY[found[0].kind].exit_code if found else 0


def _badness(found: Finding) -> int:
    return WORST_FIRST.index(found.kind) if found.kind in WORST_FIRST else -1


def _of_start(now: Status) -> list[Finding]:
    """Where it does not run, or not yet, that is all that is to be said of the parts."""
    up = now.up
    if up is not None and up.kind and up.phase == report.FAILED and not now.job.alive:
        return [Finding(kind=ErrorKind(up.kind), what=up.error, remedy=up.remedy)]
    if up is not None and up.phase == report.STARTING:
        doing = f": {up.doing}" if up.doing else ""
        return [_finding(ErrorKind.STARTING, f"wal2lake up is not done yet{doing}", "wait for it")]
    if up is not None and up.phase == "gone":
        what = "wal2lake up has ended without stopping what it had started"
        return [_finding(ErrorKind.SERVER_FAILED, what, "wal2lake up")]
    if up is None and not now.job.alive:
        what = "nothing runs here: the job is not running, and neither is wal2lake up"
        return [_finding(ErrorKind.SERVER_FAILED, what, "wal2lake up"), *_of_others(now)]
    return []


def _of_parts(now: Status) -> Iterator[Finding]:
    if now.disk:
        yield _finding(ErrorKind.DISK_FULL, now.disk, "make room there")
    yield from _of_servers(now)
    yield from _of_others(now)


def _of_others(now: Status) -> Iterator[Finding]:
    """What may not be of this installation."""
    for silence in now.unreachable:
        if now.up is None and silence.startswith(NOT_UP):
            continue  # as is said already
        yield _finding(ErrorKind.UNREACHABLE, silence, "see that it runs and can be reached")
    yield from _of_slot(now)
    connector = now.connector
    if connector is not None and connector.state != "RUNNING":
        because = f": {connector.reason}" if connector.reason else ""
        what = f"the connector is {connector.state}{because}"
        yield _finding(ErrorKind.SERVER_FAILED, what, remedy_of(connector.state))


def _of_servers(now: Status) -> Iterator[Finding]:
    for server in now.servers:
        if server.state != "running" and (server.name != "job" or not now.job.alive):
            what = f"{server.name} is {server.state}: {server.reason}"
            remedy = f"see its log file; where it stays so, {_AGAIN}"
            yield _finding(ErrorKind.SERVER_FAILED, what, remedy)
    supervised = next((each for each in now.servers if each.name == "job"), None)
    if not now.job.alive and (supervised is None or supervised.state == "running"):
        yield _finding(ErrorKind.SERVER_FAILED, "the job is not running", _AGAIN)
    elif now.job.alive and now.job.state == "starting":
        often = supervised.restarts if supervised else 0
        again = often >= _RESTARTED_TOO_OFTEN
        kind = ErrorKind.SERVER_FAILED if again else ErrorKind.STARTING
        times = f", for the {often + 1}th time" if again else ""
        yield _finding(kind, f"the job is starting{times}", "wait for it; its log file says more")


def _of_slot(now: Status) -> Iterator[Finding]:
    source = now.source
    if source is None:
        return
    if source.wal_status is None and now.lsn is not None:
        yield _finding(ErrorKind.CHAIN_BROKEN, "there is no slot in the source", NEW_EPOCH)
    elif source.wal_status == "lost":
        yield _finding(ErrorKind.CHAIN_BROKEN, "the slot has lost WAL that it needs", NEW_EPOCH)
    elif not source.slot_active and (now.lsn is not None or not now.job.alive):
        # Postgres says only in its own log what it cannot decode; the connector tries for ever.
        remedy = "the connector reads it as soon as it runs; see the worker's log, and the source's"
        yield _finding(ErrorKind.SERVER_FAILED, "nobody reads the replication slot", remedy)
    elif source.reader and not source.reader.startswith(DEBEZIUM):
        what = f"the slot is read by {source.reader}, which is not the connector"
        yield _finding(ErrorKind.SERVER_FAILED, what, "end that reader: a slot has one")


def _of_way(now: Status) -> Iterator[Finding]:
    """Whether changes move."""
    if not now.job.alive or now.job.state not in _APPLIES:
        return
    health = now.health
    if health is None or health.pid != now.job.pid or health.age_seconds > SILENT_SECONDS:
        since = f" for {health.age_seconds:.0f} s" if health is not None else ""
        what = f"the job (pid {now.job.pid}) hangs: it has not looked at itself{since}"
        yield _finding(ErrorKind.STANDS_STILL, what, f"see that it is not stopped; {_AGAIN}")
        return
    if health.registry:
        what = f"{health.registry}: a change of a structure waits for it"
        yield _finding(ErrorKind.UNREACHABLE, what, "see that it runs and can be reached")
    if health.unnoted:
        what = f"changes of a structure may not be noted: {health.unnoted}"
        yield _finding(ErrorKind.TABLE_STOPPED, what, unnoted.REMEDY)
    late = [each for each in health.hops if each.motion is not Motion.MOVES]
    yield from map(_of_hop, late)
    told = any(each.hop is Hop.APPLY and each.motion is Motion.STANDS for each in late)
    if now.job.alarm and not told:
        what, _, remedy = now.job.alarm.partition(" remedy: ")
        yield _finding(ErrorKind.STANDS_STILL, what.rstrip("; "), remedy or _AGAIN)
    if now.lsn is None:
        what = "the first snapshot is under way: no cut of the stream is published yet"
        yield _finding(ErrorKind.STARTING, what, "wait for it; wal2lake status shows how far it is")
    elif not late and (seconds := _seconds_since(now.published_at)) > _OLD_SECONDS:
        what = f"nothing was published for {seconds:.0f} s, and every hop moves"
        yield _finding(ErrorKind.BEHIND, what, "wait for it: a large transaction may be on its way")


def _of_hop(found: HopHealth) -> Finding:
    because = f": {found.why}" if found.why else ""
    if found.motion is Motion.BEHIND:
        what = f"{found.hop.value} has been at work for {found.seconds:.0f} s{because}"
        return _finding(ErrorKind.BEHIND, what, "wait for it; the job's log file says more")
    what = f"{found.hop.value} stands still since {found.seconds:.0f} s{because}"
    return _finding(ErrorKind.STANDS_STILL, what, found.remedy)


def _of_tables(tables: Iterable[TableStatus]) -> Iterator[Finding]:
    for each in tables:
        if each.state in {TableState.STOPPED.value, TableState.DEGRADED.value}:
            reason, _, remedy = each.reason.partition(" remedy: ")
            because = reason.rstrip("; ") or f"{each.refused} refused events in quarantine"
            what = f"table {each.table} is {each.state}: {because}"
            others = "wal2lake quarantine list; see docs/operations.md"
            yield _finding(ErrorKind.TABLE_STOPPED, what, remedy or others)


def _seconds_since(at: datetime | None) -> float:
    return 0.0 if at is None else (datetime.now(UTC) - at).total_seconds()


def _finding(kind: ErrorKind, what: str, remedy: str) -> Finding:
    return Finding(kind=kind, what=what, remedy=remedy)
