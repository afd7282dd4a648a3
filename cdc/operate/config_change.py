"""What ``apply-config`` does, in its parts: refuse, take over, and say what the job has to read."""

import fcntl
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.operate import operation_files as files
from cdc.operate import parts, reload
from cdc.operate.operation import Operation
from cdc.operate.plan import Plan, unread
from cdc.operate.planning import ledger_states
from cdc.source.continuity import until
from cdc.source.recapturing import Recaptured, recapture
from cdc.stack.endpoints import Endpoints
from cdc.tables import TableState

READ: Final = "resnapshot"
IN_PLACE: Final = {"mode": "in-place"}
_FOLLOWS: Final = frozenset({TableState.STREAMING.value, TableState.DEGRADED.value})


@contextmanager
def alone(state_dir: Path) -> Iterator[None]:
    """Keep a second ``apply-config`` out; raises CONFLICT for it."""
    state_dir.mkdir(parents=True, exist_ok=True)
    with (state_dir / "apply-config.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CdcError(
                ErrorKind.CONFLICT,
                f"another apply-config is at work with the state directory {state_dir}",
                remedy="wait until it has ended",
            ) from None
        yield


def refuse(config: Config, plan: Plan, purged: Collection[str]) -> None:
    """Everything that can be known before anything is changed.

    Raises SOURCE_NOT_READY for a new table that is not fit, UNREACHABLE without a job, CONFLICT
    where nothing is captured yet and while an operation works on a table that goes.
    """
    for refusal in plan.refused:
        raise CdcError(
            ErrorKind.SOURCE_NOT_READY,
            f"{refusal.subject}: {refusal.message}",
            remedy=refusal.remedy,
        )
    if not plan.begun:
        raise CdcError(
            ErrorKind.CONFLICT,
            "nothing is captured yet",
            remedy="wal2lake up captures all that source.tables names",
        )
    _refuse_without_job(config)
    _refuse_busy(config, {*purged, *(removed.table for removed in plan.removed)})


def take_over(config: Config, endpoints: Endpoints, timeout: float) -> tuple[Recaptured, bool]:
    """Capture what is wanted and have the job open it; whether the job was told.

    The job is told too where an earlier call that was interrupted did not come to it. Raises what
    ``recapture`` and the job raise, TIMEOUT when the job does not answer within ``timeout`` s.
    """
    done = recapture(config, endpoints)
    tell = bool(done.added or done.removed) or _is_behind(config, done)
    if tell:
        reload_job(config, timeout)
    return done, tell


def reload_job(config: Config, timeout: float) -> None:
    """Have the running job read its configuration again. Raises what it answers, TIMEOUT."""
    reload.await_done(config.state_dir, reload.ask_reload(config.state_dir), timeout)


def to_read(config: Config, done: Recaptured) -> list[str]:
    """Captured tables whose rows are not in the lake: the new ones, and those left over."""
    fit = [str(table.table) for table in done.tables if table.unfit is None]
    return sorted({*map(str, done.added), *unread(ledger_states(config), fit)})


def reading_now(config: Config, tables: Collection[str]) -> list[Operation]:
    """Unfinished operations that read some of the tables already."""
    return [
        found
        for found in files.asked(config.state_dir)
        if found.command == READ and set(found.tables) & set(tables)
    ]


def await_streaming(config: Config, tables: Collection[str], timeout: float) -> None:
    """Until all follow at the newest cut. Raises TABLE_STOPPED, TIMEOUT."""

    def follow() -> bool:
        states = ledger_states(config) or {}
        stopped = [name for name in tables if states.get(name) == TableState.STOPPED.value]
        if stopped:
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                f"{stopped[0]} was read and is stopped",
                remedy="wal2lake status says why",
            )
        return all(states.get(name) in _FOLLOWS for name in tables)

    until(follow, timeout, f"not all of {', '.join(tables)} follow")


def _is_behind(config: Config, done: Recaptured) -> bool:
    """Whether the job works with other tables, or was asked and did not answer."""
    states = ledger_states(config)
    captured = {str(table.table) for table in done.tables}
    other = states is not None and set(states) != captured
    return other or reload.pending(config.state_dir) is not None


def _refuse_without_job(config: Config) -> None:
    if not parts.job(config.state_dir).alive:
        raise CdcError(
            ErrorKind.UNREACHABLE,
            "the job is not running, and it is what reads new tables",
            remedy="wal2lake up",
        )


def _refuse_busy(config: Config, going: Collection[str]) -> None:
    for found in files.asked(config.state_dir):
        if common := sorted(set(found.tables) & set(going)):
            raise CdcError(
                ErrorKind.CONFLICT,
                f"operation {found.id} ({found.command}) is not finished with {common[0]}",
                remedy=f"wait: wal2lake operations --follow {found.id}; or wal2lake cancel",
            )
