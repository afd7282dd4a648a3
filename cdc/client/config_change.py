"""Take the steps of ``apply-config``: refuse, take the configuration over, find tables to read."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cdc.capture.change_captured import CapturedChange, change_captured
from cdc.client.plan import Plan, unread_tables
from cdc.client.plan_inputs import read_tables
from cdc.client.status import components
from cdc.client.status.cut_wait import wait_for_cut
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger
from cdc.state import file_lock, reload
from cdc.state import operation_files as files
from cdc.state.operation import IN_PLACE, Operation
from cdc.state.pipeline import Pipeline

READ: Final = "resnapshot"
READ_OPTIONS: Final = {"mode": IN_PLACE}


@contextmanager
def only_apply_config(state_dir: Path) -> Iterator[None]:
    """Hold the lock of ``apply-config``; raises CONFLICT while another one holds it."""
    refusal = CdcError(
        ErrorKind.CONFLICT,
        f"another apply-config is running with the state directory {state_dir}",
        remedy="wait until it has ended",
    )
    with file_lock.hold(state_dir / "apply-config.lock", refusal):
        yield


def refuse_impossible(config: Config, plan: Plan, purged: Collection[str]) -> None:
    """Refuse a plan that cannot be carried out, before anything is changed.

    Raises SOURCE_NOT_READY for a new table that cannot be followed, UNREACHABLE when the job is not
    running, CONFLICT when nothing is captured yet or an operation works on a removed table.
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
            remedy="run wal2lake up, which captures everything that source.tables names",
        )
    _refuse_without_job(config)
    _refuse_busy(config, {*purged, *(removed.table for removed in plan.removed)})


def take_over(pipeline: Pipeline, timeout: float) -> tuple[CapturedChange, bool]:
    """Capture the wanted tables and have the job reload; return what changed, and if it reloaded.

    The job also reloads if an earlier, interrupted call has not got that far. ``timeout`` is in
    seconds. Raises the errors of ``change_captured`` and of the job, and TIMEOUT when the job does
    not answer.
    """
    config = pipeline.config
    change = change_captured(pipeline)
    reloads = bool(change.added or change.removed) or _is_behind(config, change)
    if reloads:
        reload_job(config, timeout)
        _await_left(config, change, timeout)
    return change, reloads


def reload_job(config: Config, timeout: float) -> None:
    """Have the running job reload its configuration; raises the error it answers, or TIMEOUT."""
    reload.await_answer(config.state_dir, reload.ask_reload(config.state_dir), timeout)


def tables_to_read(config: Config, change: CapturedChange) -> list[str]:
    """Return the captured tables whose rows are not in the lake: new ones and earlier ones."""
    fit = [str(table.table) for table in change.tables if table.unfit is None]
    return sorted({*map(str, change.added), *unread_tables(read_tables(config), fit)})


def reading_now(config: Config, tables: Collection[str]) -> list[Operation]:
    """Return the unfinished operations that already read some of the tables."""
    return [
        operation
        for operation in files.unfinished(config.state_dir)
        if operation.command == READ and set(operation.tables) & set(tables)
    ]


def _await_left(config: Config, change: CapturedChange, timeout: float) -> None:
    """Wait for a cut without the removed tables.

    From it the job can tell a table that was removed and added again later, and so missed events,
    from one that was never removed.
    """
    captured = {str(table.table) for table in change.tables}
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
            f"the job published no cut without the removed tables within {timeout:g} s",
            remedy="see wal2lake status; then run wal2lake apply-config again",
        )


def _is_behind(config: Config, change: CapturedChange) -> bool:
    """Return whether the job works with other tables, or has not answered an earlier request."""
    cut_tables = read_tables(config)
    captured = {str(table.table) for table in change.tables}
    other = cut_tables is not None and set(cut_tables) != captured
    return other or reload.unanswered_token(config.state_dir) is not None


def _refuse_without_job(config: Config) -> None:
    if not components.job(config.state_dir).alive:
        raise CdcError(
            ErrorKind.UNREACHABLE,
            "the job is not running, and new tables are read by the job",
            remedy="wal2lake up",
        )


def _refuse_busy(config: Config, leaving: Collection[str]) -> None:
    for operation in files.unfinished(config.state_dir):
        if common := sorted(set(operation.tables) & set(leaving)):
            raise CdcError(
                ErrorKind.CONFLICT,
                f"operation {operation.id} ({operation.command}) is not finished with {common[0]}",
                remedy=f"wait: wal2lake operations --follow {operation.id}; or wal2lake cancel",
            )
