"""Decides which derived tables have values of a table, and whether they can be made without it."""

from collections.abc import Callable, Iterable, Sequence

from cdc.derive.definition.declared import Declared
from cdc.derive.definition.definition import Definition
from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.ledger import LedgerRow
from cdc.tables import TableId, TableState

_DROP = (
    "delete their definitions, run wal2lake apply-config and wal2lake derived drop; define them "
    "again afterwards"
)


def derived_from(
    table: TableId, row: LedgerRow, found: Declared, is_paused: Callable[[TableId], bool]
) -> list[Definition]:
    """Return the derived tables of the cut that follow from a table, each after its inputs.

    Raises CONFLICT where one of them cannot be made anew, or keeps rows that are gone.
    """
    known = {str(one.table): one for one in found.definitions}
    for entry in row.derived:
        one = known.get(entry.table)
        if one is None or entry.definition not in {"", one.hash}:
            raise _refused(
                [entry.table],
                f"may have values of {table}: its definition is not the one that it was made by",
                "wal2lake derived check, then wal2lake apply-config",
            )
    chosen = [one for one in over(table, found.definitions) if row.derived_entry(str(one.table))]
    _refuse_kept(table, chosen)
    for one in chosen:
        _refuse_at_rest(row, one, is_paused(one.table))
    return chosen


def over(table: TableId, definitions: Iterable[Definition]) -> list[Definition]:
    """Return those that read the table, or another that does; all come after their inputs."""
    reached, found = {table}, list[Definition]()
    for one in definitions:
        if reached.intersection(one.inputs):
            reached.add(one.table)
            found.append(one)
    return found


def _refuse_kept(table: TableId, chosen: Sequence[Definition]) -> None:
    kept = [str(one.table) for one in chosen if one.is_of_events or _has_final_rows(one)]
    if kept:
        verb = "keeps" if len(kept) == 1 else "keep"
        raise _refused(kept, f"{verb} what {table} no longer has", _DROP)


def _has_final_rows(definition: Definition) -> bool:
    """Return whether it counts rows of windows that are closed although they are gone."""
    return definition.late is not None and definition.late.policy == "aside"


def _refuse_at_rest(row: LedgerRow, definition: Definition, is_paused: bool) -> None:
    name = str(definition.table)
    if is_paused:
        raise _refused([name], "is paused at an older cut", f"wal2lake derived resume {name}")
    entry = row.derived_entry(name)
    if entry is not None and entry.state == TableState.STOPPED.value:
        raise _refused([name], f"is stopped: {entry.reason}", "wal2lake derived list")


def _refused(tables: Sequence[str], what: str, remedy: str) -> CdcError:
    return CdcError(ErrorKind.CONFLICT, f"{', '.join(tables)} {what}", remedy=remedy)
