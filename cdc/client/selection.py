"""Select the tables of an operation by names, patterns, ``--all`` or ``--stopped``.

Everything here is pure: the tables that exist come from the ledger's newest row and from the
source's catalogue.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from cdc.errors import CdcError, ErrorKind
from cdc.tables import TableId, TableMode, TableState, matches

_WILD: Final = frozenset("*?[")
_HOW: Final = "name tables (schema.table, with * and ?), or give --all or --stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChoice:
    """Says how the command line chooses tables; exactly one of the three must be given."""

    names: tuple[str, ...] = ()
    every: bool = False
    stopped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingTables:
    """Says which tables exist in the lake and in the source."""

    states: Mapping[str, str]  # by schema.table, in the ledger's newest row, or before any
    captured: Collection[TableId] | None = None  # None: the operation does not need the source
    source: Collection[TableId] = ()  # every table of the source, captured or not

    def known(self) -> list[TableId]:
        """Return the tables that an operation can be for, in order of name."""
        in_lake = sorted(TableId.parse(name) for name in self.states)
        return [table for table in in_lake if self.captured is None or table in self.captured]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Names the selected tables, each once, or says why there are none."""

    tables: tuple[TableId, ...]
    nothing: str = ""  # why no table is selected


def selected(choice: TableChoice, tables: ExistingTables) -> Selection:
    """Return the tables that the command line asks for.

    Raises CONFIG for a name that is not a table of the lake, with the reason and a similar name.
    """
    ways = sum((bool(choice.names), choice.every, choice.stopped))
    if ways != 1:
        what = "names, --all and --stopped exclude each other" if ways else "no table is named"
        raise CdcError(ErrorKind.CONFIG, what, remedy=_HOW)
    if not tables.states:
        raise CdcError(
            ErrorKind.CONFIG,
            "no table is in the lake yet",
            remedy="run wal2lake up and wait for the first snapshot; wal2lake status shows it",
        )
    if choice.names:
        named = (table for name in choice.names for table in _named(name, tables))
        return Selection(tables=tuple(dict.fromkeys(named)))
    return _by_state(tables, stopped=choice.stopped)


def refuse_where(
    selection: Selection,
    states: Mapping[str, str],
    modes: Mapping[TableId, TableMode],
    *,
    shadow: bool,
) -> None:
    """Refuse ``--where`` unless it is for one table that can be read in part.

    Raises CONFIG with --shadow, for several tables, and for a table that is stopped or append-only.
    """
    if shadow:
        raise _no_where(
            "reads a part of a table, but --shadow replaces the whole table",
            "leave one of them out",
        )
    if len(selection.tables) != 1:
        count = f"works for one table only, but {len(selection.tables)} are selected"
        raise _no_where(count, "name one table, and run the command once for each")
    (table,) = selection.tables
    if states.get(str(table)) == TableState.STOPPED.value:
        raise _no_where(
            f"reads a part of a table, but {table} is stopped: its other rows are behind",
            "read the whole table: leave --where out",
        )
    if modes.get(table) is TableMode.APPEND:
        raise _no_where(
            f"needs rows with an identity, but {table} is append-only",
            "read the whole table: leave --where out",
        )


def _by_state(tables: ExistingTables, *, stopped: bool) -> Selection:
    known = tables.known()
    if not stopped:
        nothing = "" if known else "no table of the lake is captured any more"
        return Selection(tables=tuple(known), nothing=nothing)
    chosen = tuple(t for t in known if tables.states[str(t)] == TableState.STOPPED.value)
    return Selection(tables=chosen, nothing="" if chosen else "no table is stopped")


def _named(name: str, tables: ExistingTables) -> Iterator[TableId]:
    known = tables.known()
    if _WILD & set(name):
        matching = [table for table in known if matches(table, [name])]
        if not matching:
            raise _unknown(f"{name} matches no table of the lake", name, known)
        yield from matching
        return
    table = TableId.parse(name)
    if table not in known:
        raise _refusal(table, tables)
    yield table


def _refusal(table: TableId, tables: ExistingTables) -> CdcError:
    captured = tables.captured or ()
    if str(table) in tables.states:
        return CdcError(
            ErrorKind.CONFIG,
            f"{table} is in the lake, but is no longer captured",
            remedy="check that source.tables still names it and the source still has it: "
            "wal2lake check",
        )
    if table in captured:
        return CdcError(
            ErrorKind.CONFIG,
            f"{table} is captured, but is not in the lake yet",
            remedy="wait for its first snapshot; wal2lake status shows it",
        )
    if table in tables.source:
        return CdcError(
            ErrorKind.CONFIG,
            f"{table} is a table of the source, but is not captured",
            remedy="add it to source.tables in wal2lake.yaml, then run wal2lake apply-config",
        )
    return _unknown(f"there is no table {table}", str(table), [*tables.known(), *tables.source])


def _unknown(message: str, name: str, known: Collection[TableId]) -> CdcError:
    names = list(dict.fromkeys(map(str, known)))
    near = get_close_matches(name, names, n=1)
    remedy = f"did you mean {near[0]}?" if near else "wal2lake status lists the tables"
    return CdcError(ErrorKind.CONFIG, message, remedy=remedy)


def _no_where(reason: str, remedy: str) -> CdcError:
    return CdcError(ErrorKind.CONFIG, f"--where {reason}", remedy=remedy)
