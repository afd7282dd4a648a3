"""Which tables an operation is for: names, patterns, ``--all`` or ``--stopped``, against what is.

Pure; what there is comes from the ledger's newest row and from the source's catalogue.
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
class Asked:
    """What the command line says of the tables; exactly one of the three is given."""

    names: tuple[str, ...] = ()
    every: bool = False
    stopped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What there is. ``captured`` is None for an operation that does not need the source."""

    states: Mapping[str, str]  # by schema.table, in the ledger's newest row, or before any
    captured: Collection[TableId] | None = None
    source: Collection[TableId] = ()  # every table of the source, captured or not

    def known(self) -> list[TableId]:
        """What the operation can be for."""
        found = sorted(TableId.parse(name) for name in self.states)
        return [table for table in found if self.captured is None or table in self.captured]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The tables, each once; ``nothing`` says why there is none."""

    tables: tuple[TableId, ...]
    nothing: str = ""


def selected(asked: Asked, tables: Tables) -> Selection:
    """The tables that are meant.

    Raises CONFIG naming what is not a table of the lake, why, and what comes near.
    """
    ways = sum((bool(asked.names), asked.every, asked.stopped))
    if ways != 1:
        what = "names, --all and --stopped exclude each other" if ways else "no table is named"
        raise CdcError(ErrorKind.CONFIG, what, remedy=_HOW)
    if not tables.states:
        raise CdcError(
            ErrorKind.CONFIG,
            "no table is in the lake yet",
            remedy="wal2lake up, and wait for the first snapshot; wal2lake status shows it",
        )
    if asked.names:
        found = (each for name in asked.names for each in _named(name, tables))
        return Selection(tables=tuple(dict.fromkeys(found)))
    return _by_state(tables, stopped=asked.stopped)


def refuse_where(
    selection: Selection,
    states: Mapping[str, str],
    modes: Mapping[TableId, TableMode],
    *,
    shadow: bool,
) -> None:
    """Raises CONFIG where ``--where`` cannot be: it is for a part of one table that follows."""
    if shadow:
        raise _no_where(
            "reads a part of a table, and --shadow replaces it whole", "leave one of them out"
        )
    if len(selection.tables) != 1:
        said = f"is for one table, and {len(selection.tables)} are meant"
        raise _no_where(said, "name one table, and run the command once for each")
    (table,) = selection.tables
    if states.get(str(table)) == TableState.STOPPED.value:
        raise _no_where(
            f"reads a part of a table, and {table} is stopped: its other rows are behind",
            "read it whole: leave --where out",
        )
    if modes.get(table) is TableMode.APPEND:
        raise _no_where(
            f"needs rows that can be told from each other, and {table} is only appended to",
            "read it whole: leave --where out",
        )


def _by_state(tables: Tables, *, stopped: bool) -> Selection:
    known = tables.known()
    if not stopped:
        nothing = "" if known else "no table of the lake is captured any more"
        return Selection(tables=tuple(known), nothing=nothing)
    found = tuple(t for t in known if tables.states[str(t)] == TableState.STOPPED.value)
    return Selection(tables=found, nothing="" if found else "no table is stopped")


def _named(name: str, tables: Tables) -> Iterator[TableId]:
    known = tables.known()
    if _WILD & set(name):
        found = [table for table in known if matches(table, [name])]
        if not found:
            raise _unknown(f"{name} matches no table of the lake", name, known)
        yield from found
        return
    table = TableId.parse(name)
    if table not in known:
        raise _refusal(table, tables)
    yield table


def _refusal(table: TableId, tables: Tables) -> CdcError:
    captured = tables.captured or ()
    if str(table) in tables.states:
        return CdcError(
            ErrorKind.CONFIG,
            f"{table} is in the lake and is not captured any more",
            remedy="is it still in source.tables, and in the source? wal2lake check says more",
        )
    if table in captured:
        return CdcError(
            ErrorKind.CONFIG,
            f"{table} is captured and is not in the lake yet",
            remedy="wait for its first snapshot; wal2lake status shows it",
        )
    if table in tables.source:
        return CdcError(
            ErrorKind.CONFIG,
            f"{table} is a table of the source and is not captured",
            remedy="add it to source.tables in wal2lake.yaml, then run wal2lake apply-config",
        )
    return _unknown(f"there is no table {table}", str(table), [*tables.known(), *tables.source])


def _unknown(message: str, name: str, known: Collection[TableId]) -> CdcError:
    names = list(dict.fromkeys(map(str, known)))
    near = get_close_matches(name, names, n=1)
    remedy = f"did you mean {near[0]}?" if near else "wal2lake status lists the tables"
    return CdcError(ErrorKind.CONFIG, message, remedy=remedy)


def _no_where(said: str, remedy: str) -> CdcError:
    return CdcError(ErrorKind.CONFIG, f"--where {said}", remedy=remedy)
