"""Decide from the status of all components what is wrong and what to do about it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from cdc.client.status.status import Status, TableStatus
from cdc.errors import POLICY, ErrorKind
from cdc.observe.causes import DEBEZIUM, remedy_of
from cdc.observe.hop_motion import Hop, Motion
from cdc.source.notes import unnoted
from cdc.source.server.slot import NEW_EPOCH
from cdc.stack.process import stack_report
from cdc.state.endpoints import NOT_UP
from cdc.state.health import HopHealth
from cdc.state.job_state import RELOADING
from cdc.tables import TableState

MEANINGS: Final[dict[ErrorKind, str]] = {
    ErrorKind.CHAIN_BROKEN: "the replication slot is gone, or has lost WAL that it needs",
    ErrorKind.DISK_FULL: "the disk of the state directory has too little free space",
    ErrorKind.SERVER_FAILED: "the job, the connector or an embedded server is not running, or "
    "nothing reads the replication slot",
    ErrorKind.STANDS_STILL: "a hop stands still, so that changes do not move, or the job hangs",
    ErrorKind.UNREACHABLE: "the source, Kafka, Connect or the registry does not answer",
    ErrorKind.TABLE_STOPPED: "a table is stopped or degraded, or may have to be because changes of "
    "its structure are not noted; the other tables continue",
    ErrorKind.STARTING: "`up`, the job or the first snapshot is still under way",
    ErrorKind.BEHIND: "every hop moves, but the newest published cut is more than a minute old",
}
"""What ``status`` looks for, the worst first; an error that ended ``wal2lake up`` is worse yet."""
WORST_FIRST: Final = tuple(MEANINGS)
IGNORED_BY_LIVE: Final = frozenset({ErrorKind.TABLE_STOPPED, ErrorKind.STARTING, ErrorKind.BEHIND})
"""What a restart would not fix, so that a health check ignores it."""
SILENT_SECONDS: Final = 30.0
"""The job's health watch writes more often; if it is silent for this long, the job hangs."""
_APPLIES: Final = frozenset({"applying", RELOADING})
_OLD_SECONDS: Final = 60.0
_RESTARTED_TOO_OFTEN: Final = 3
_AGAIN: Final = "wal2lake down, then wal2lake up"
_REACH: Final = "make sure that it runs and can be reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFinding:
    """Names one problem and says what to do about it."""

    kind: ErrorKind
    what: str  # a statement that begins in lower case
    remedy: str


def findings(now: Status) -> list[StatusFinding]:
    """Return the problems, the worst first; an empty list when all is well."""
    problems = _of_start(now) or [*_of_components(now), *_of_hops(now)]
    problems += [*_of_tables(now.tables), *_of_derived(now)]
    return sorted(problems, key=_rank)


def live(problems: Iterable[StatusFinding]) -> list[StatusFinding]:
    """Return the problems that matter to a health check: those that a restart may fix."""
    return [finding for finding in problems if finding.kind not in IGNORED_BY_LIVE]


def exit_code(problems: list[StatusFinding]) -> int:
    """Return the exit code of the first, worst problem; 0 when there is none."""
    return POLICY[problems[0].kind].exit_code if problems else 0


def _rank(finding: StatusFinding) -> int:
    return WORST_FIRST.index(finding.kind) if finding.kind in WORST_FIRST else -1


def _of_start(now: Status) -> list[StatusFinding]:
    """Return why the pipeline is not running, or not yet; then its components are not judged."""
    up = now.up
    if up is not None and up.kind and up.phase == stack_report.FAILED and not now.job.alive:
        return [StatusFinding(kind=ErrorKind(up.kind), what=up.error, remedy=up.remedy)]
    if up is not None and up.phase == stack_report.STARTING:
        doing = f": {up.doing}" if up.doing else ""
        return [_finding(ErrorKind.STARTING, f"wal2lake up has not finished{doing}", "wait for it")]
    if up is not None and up.phase == "gone":
        what = "wal2lake up has ended without stopping what it had started"
        return [_finding(ErrorKind.SERVER_FAILED, what, "wal2lake up")]
    if up is None and not now.job.alive:
        what = "the job is not running, and neither is wal2lake up"
        return [_finding(ErrorKind.SERVER_FAILED, what, "wal2lake up"), *_of_others(now)]
    return []


def _of_components(now: Status) -> Iterator[StatusFinding]:
    if now.disk:
        yield _finding(ErrorKind.DISK_FULL, now.disk, "free some space there")
    yield from _of_servers(now)
    yield from _of_others(now)


def _of_others(now: Status) -> Iterator[StatusFinding]:
    """Judge the components that may run outside this installation."""
    for silence in now.unreachable:
        if now.up is None and silence.startswith(NOT_UP):
            continue  # reported already: wal2lake up is not running
        yield _finding(ErrorKind.UNREACHABLE, silence, _REACH)
    yield from _of_slot(now)
    connector = now.connector
    if connector is not None and connector.state != "RUNNING":
        because = f": {connector.reason}" if connector.reason else ""
        what = f"the connector is {connector.state}{because}"
        yield _finding(ErrorKind.SERVER_FAILED, what, remedy_of(connector.state))


def _of_servers(now: Status) -> Iterator[StatusFinding]:
    for server in now.servers:
        if server.state != "running" and (server.name != "job" or not now.job.alive):
            what = f"{server.name} is {server.state}: {server.reason}"
            remedy = f"see its log file; if it does not recover, {_AGAIN}"
            yield _finding(ErrorKind.SERVER_FAILED, what, remedy)
    supervised = next((server for server in now.servers if server.name == "job"), None)
    if not now.job.alive and (supervised is None or supervised.state == "running"):
        yield _finding(ErrorKind.SERVER_FAILED, "the job is not running", _AGAIN)
    elif now.job.alive and now.job.state == "starting":
        restarts = supervised.restarts if supervised else 0
        too_often = restarts >= _RESTARTED_TOO_OFTEN
        kind = ErrorKind.SERVER_FAILED if too_often else ErrorKind.STARTING
        after = f", after {restarts} restarts" if too_often else ""
        yield _finding(kind, f"the job is starting{after}", "wait for it; see its log file")


def _of_derived(now: Status) -> Iterator[StatusFinding]:
    for one in now.derived:
        if one.state == TableState.STOPPED.value:
            remedy = "correct its definition or the row; the table goes on when its inputs change"
            what = f"{one.table}, a derived table, is stopped: {one.reason}"
            yield _finding(ErrorKind.TABLE_STOPPED, what, remedy)


def _of_slot(now: Status) -> Iterator[StatusFinding]:
    source = now.source
    if source is None:
        return
    if source.wal_status is None and now.lsn is not None:
        what = "the replication slot does not exist in the source"
        yield _finding(ErrorKind.CHAIN_BROKEN, what, NEW_EPOCH)
    elif source.wal_status == "lost":
        what = "the replication slot has lost WAL that it needs"
        yield _finding(ErrorKind.CHAIN_BROKEN, what, NEW_EPOCH)
    elif not source.slot_active and (now.lsn is not None or not now.job.alive):
        # What Postgres cannot decode is only in Postgres's own log; the connector retries for ever.
        remedy = "see the logs of the worker and of Postgres; a running connector reads the slot"
        yield _finding(ErrorKind.SERVER_FAILED, "nothing reads the replication slot", remedy)
    elif source.reader and not source.reader.startswith(DEBEZIUM):
        what = f"the replication slot is read by {source.reader}, which is not the connector"
        yield _finding(ErrorKind.SERVER_FAILED, what, "end that reader: a slot can have only one")


def _of_hops(now: Status) -> Iterator[StatusFinding]:
    """Judge whether changes move, from what the job's health watch saw last."""
    if not now.job.alive or now.job.state not in _APPLIES:
        return
    health = now.health
    if health is None or health.pid != now.job.pid or health.age_seconds > SILENT_SECONDS:
        since = f" for {health.age_seconds:.0f} s" if health is not None else ""
        what = f"the job (pid {now.job.pid}) hangs: its health watch has been silent{since}"
        yield _finding(ErrorKind.STANDS_STILL, what, f"make sure it is not stopped; {_AGAIN}")
        return
    if health.registry:
        what = f"{health.registry}; a structure change waits for it"
        yield _finding(ErrorKind.UNREACHABLE, what, _REACH)
    if health.unnoted:
        what = f"changes of a table's structure may not be noted: {health.unnoted}"
        yield _finding(ErrorKind.TABLE_STOPPED, what, unnoted.REMEDY)
    late = [hop for hop in health.hops if hop.motion is not Motion.MOVES]
    yield from map(_of_hop, late)
    apply_stands = any(hop.hop is Hop.APPLY and hop.motion is Motion.STANDS for hop in late)
    if now.job.alarm and not apply_stands:  # that hop's finding gives the alarm as its cause
        what, _, remedy = now.job.alarm.partition(" remedy: ")
        yield _finding(ErrorKind.STANDS_STILL, what.rstrip("; "), remedy or _AGAIN)
    if now.lsn is None:
        what = "the first snapshot is under way: no cut of the stream is published yet"
        yield _finding(ErrorKind.STARTING, what, "wait for it; wal2lake status shows its progress")
    elif not late and (seconds := _seconds_since(now.published_at)) > _OLD_SECONDS:
        what = f"nothing has been published for {seconds:.0f} s, although every hop moves"
        yield _finding(ErrorKind.BEHIND, what, "wait: a large transaction may be under way")


def _of_hop(hop: HopHealth) -> StatusFinding:
    because = f": {hop.why}" if hop.why else ""
    if hop.motion is Motion.BEHIND:
        what = f"{hop.hop.value} has been at work for {hop.seconds:.0f} s{because}"
        return _finding(ErrorKind.BEHIND, what, "wait for it; see the job's log file")
    what = f"{hop.hop.value} has stood still for {hop.seconds:.0f} s{because}"
    return _finding(ErrorKind.STANDS_STILL, what, hop.remedy)


def _of_tables(tables: Iterable[TableStatus]) -> Iterator[StatusFinding]:
    for table in tables:
        if table.state in {TableState.STOPPED.value, TableState.DEGRADED.value}:
            reason, _, remedy = table.reason.partition(" remedy: ")
            because = reason.rstrip("; ") or f"{table.refused} refused events in quarantine"
            what = f"table {table.table} is {table.state}: {because}"
            default = "see wal2lake quarantine list, and docs/operations.md"
            yield _finding(ErrorKind.TABLE_STOPPED, what, remedy or default)


def _seconds_since(at: datetime | None) -> float:
    return 0.0 if at is None else (datetime.now(UTC) - at).total_seconds()


def _finding(kind: ErrorKind, what: str, remedy: str) -> StatusFinding:
    return StatusFinding(kind=kind, what=what, remedy=remedy)
