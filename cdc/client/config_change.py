"""What ``apply-config`` does, in its parts: refuse, take over, and say what the job has to read."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cdc.capture.recapture import Recaptured, recapture
from cdc.client.plan import Plan, unread
from cdc.client.plan_inputs import read_tables
from cdc.client.status import components
from cdc.client.status.cut_wait import wait_for_cut
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger
from cdc.state import file_lock, reload
from cdc.state import operation_files as files
from cdc.state.endpoints import Endpoints
from cdc.state.operation import IN_PLACE, Operation

READ: Final = "resnapshot"
READ_OPTIONS: Final = {"mode": IN_PLACE}


@contextmanager
def alone(state_dir: Path) -> Iterator[None]:
    """Keep a second ``apply-config`` out; raises CONFLICT for it."""
    refusal = CdcError(
        ErrorKind.CONFLICT,
        f"another apply-config is at work with the state directory {state_dir}",
        remedy="wait until it has ended",
    )
    with file_lock.hold(state_dir / "apply-config.lock", refusal):
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
        _await_left(config, done, timeout)
    return done, tell


def reload_job(config: Config, timeout: float) -> None:
    """Have the running job read its configuration again. Raises what it answers, TIMEOUT."""
    reload.await_done(config.state_dir, reload.ask_reload(config.state_dir), timeout)


def to_read(config: Config, done: Recaptured) -> list[str]:
    """Captured tables whose rows are not in the lake: the new ones, and those left over."""
    fit = [str(table.table) for table in done.tables if table.unfit is None]
    return sorted({*map(str, done.added), *unread(read_tables(config), fit)})


def reading_now(config: Config, tables: Collection[str]) -> list[Operation]:
    """Unfinished operations that read some of the tables already."""
    return [
        found
        for found in files.asked(config.state_dir)
        if found.command == READ and set(found.tables) & set(tables)
    ]


def _await_left(config: Config, done: Recaptured, timeout: float) -> None:
    """Until a cut is without the tables that are taken out.

    By that the job knows one that is taken in again later, which missed events, from one that
    never left.
    """
    captured = {str(table.table) for table in done.tables}
    ledger = Ledger(ledger_path(config))
    last = ledger.last()
    if last is None:
        return
    row = wait_for_cut(
        ledger,
        lambda row: captured.issuperset(entry.table for entry in row.tables),
        after=last.cut - 1,
        timeout=timeout,
    )
    if row is None:
        raise CdcError(
            ErrorKind.TIMEOUT,
            f"the job published no cut without the tables taken out within {timeout:g} s",
            remedy="wal2lake status; then wal2lake apply-config again",
        )


def _is_behind(config: Config, done: Recaptured) -> bool:
    """Whether the job works with other tables, or was asked and did not answer."""
    read = read_tables(config)
    captured = {str(table.table) for table in done.tables}
    other = read is not None and set(read) != captured
    return other or reload.pending(config.state_dir) is not None


def _refuse_without_job(config: Config) -> None:
    if not components.job(config.state_dir).alive:
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
