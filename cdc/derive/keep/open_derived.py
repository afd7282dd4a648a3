"""Opens the derived tables that a folder of definitions declares, for a run of the job."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial

from cdc.config import Config
from cdc.derive.definition.declared import Declared, declared
from cdc.derive.engine.large import Large
from cdc.derive.keep.allowed import limits
from cdc.derive.keep.derived_tables import DerivedTables
from cdc.derive.keep.histories import Histories, LoggedTables
from cdc.derive.late_rows.captured_log import CapturedLog
from cdc.lake.layout import table_path
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.state.admissions import admissions
from cdc.state.derived_requests import pauses, rebuilds
from cdc.tables import TableId, TableState


def open_derived(
    config: Config,
    captured: Collection[TableId],
    last: Iterable[DerivedEntry],
    log: LoggedTables | None = None,
    large: Large | None = None,
) -> DerivedTables:
    """Return the derived tables; ``last`` are their entries in the newest cut.

    ``log`` is what histories are made of, and what says which rows are late; without it they stop.
    ``large`` calculates what is large.

    A definition that is not valid stops its table alone, with the problem as the reason.
    """
    found, before = declared(config.derived.path, captured), {entry.table: entry for entry in last}
    return DerivedTables(
        found.definitions,
        partial(table_path, config),
        replace(limits(config), large=large),
        last=before.values(),
        refused=[
            _refused(config, table, reason, before.get(str(table)))
            for table, reason in _reasons(found).items()
        ],
        digests=found.digests,
        rebuilds=rebuilds(config.state_dir),
        pauses=pauses(config.state_dir),
        admissions=admissions(config.state_dir),
        seconds=config.derived.seconds,
        histories=None if log is None else Histories(log),
        log=None if log is None else CapturedLog(log.reader, log.given_up),
    )


def _reasons(found: Declared) -> dict[TableId, str]:
    """Return the first problem of each table that has one."""
    return {table: str(problem) for table, problem in reversed(found.problems) if table is not None}


def _refused(
    config: Config, table: TableId, reason: str, before: DerivedEntry | None
) -> DerivedEntry:
    return DerivedEntry(
        table=str(table),
        path=table_path(config, table),
        version=before.version if before else -1,
        at_cut=before.at_cut if before else 0,
        definition=before.definition if before else "",
        rows=before.rows if before else 0,
        delta_id=before.delta_id if before else "",
        state=TableState.STOPPED.value,
        reason=reason,
    )
