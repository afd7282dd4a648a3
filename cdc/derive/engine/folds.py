"""Folds the events of a table that is loaded, for the queries over the states and the faults.

DuckDB puts the events of each stream in the order of their versions; the fold goes through them,
one stream after the other. Memory is needed for some events and for the state of one stream.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import islice
from typing import Final

import pyarrow as pa

from cdc.derive.engine.calculator import Calculator, named
from cdc.derive.engine.chunks import in_order
from cdc.derive.fold.fold import DETAIL, FAULT, FAULTS, STATES, VERSION, Fold
from cdc.derive.fold.program import program
from cdc.derive.fold.stream import Event, Folded, Rules, fold_streams
from cdc.errors import CdcError, ErrorKind
from cdc.events.values.sql_text import postgres_name
from cdc.tables import TableId

_EVENTS: Final = "_cdc_events"
_ROW: Final = "_cdc_row"
_STREAM: Final = "_cdc_stream"
_ZONED: Final = "WITH TIME ZONE"
_CHUNK: Final = 2_000
"""How many events are read, and how many states are written, at a time."""
_WHOLE: Final = re.compile(r"(TINY|SMALL|BIG)INT|INTEGER|DECIMAL\(\d+,0\)")


def find_states(database: Calculator, table: TableId, fold: Fold, ties: Sequence[str]) -> None:
    """Create the tables STATES and FAULTS from the loaded table.

    ``ties`` are columns that put events of equal version into one order, whatever the files have.
    Raises CONFIG for columns that do not fit and for a file that fails outside ``apply``, and
    TABLE_STOPPED where the fold needs what the machine does not have.
    """
    types = _types(database, table, fold)
    rules = Rules(apply=program(fold.code), columns=fold.columns, first=fold.first)
    for one in (STATES, FAULTS, _EVENTS):
        database.run(f"DROP TABLE IF EXISTS {one}")
    database.run(f"CREATE TABLE {STATES} AS {_states_query(table, fold)}")
    database.run(f"CREATE TABLE {FAULTS} AS {_faults_query(table, fold)}")
    database.run(f"CREATE TABLE {_EVENTS} AS {_events_query(table, fold, ties)}")
    try:
        _write(database, fold_streams(_events(database, fold, types), rules))
    except (MemoryError, RecursionError) as error:
        what = f"its fold failed: {type(error).__name__}"
        raise CdcError(ErrorKind.TABLE_STOPPED, what, remedy="correct apply") from None
    finally:
        database.run(f"DROP TABLE {_EVENTS}")


def _types(database: Calculator, table: TableId, fold: Fold) -> dict[str, str]:
    """Return the columns of the events, with their types in DuckDB's words.

    All that the fold names are among them.
    """
    types = dict(database.types(f"SELECT * FROM {named(table)}"))  # noqa: S608 - our names
    for name in (*fold.stream, fold.version):
        if name not in types:
            near = get_close_matches(name, types, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"columns are {', '.join(types)}"
            raise CdcError(ErrorKind.CONFIG, f"{table} has no column {name}", remedy=remedy)
    kind = types[fold.version]
    if not _WHOLE.fullmatch(kind):
        what = f"version names {fold.version}, which is of type {kind.lower()}"
        raise CdcError(ErrorKind.CONFIG, what, remedy="name a column of whole numbers")
    return types


def _states_query(table: TableId, fold: Fold) -> str:
    columns = [
        *_of_events(fold),
        *(f"CAST(NULL AS {c.type.duckdb}) AS {postgres_name(c.name)}" for c in fold.columns),
    ]
    return f"SELECT {', '.join(columns)} FROM {named(table)} LIMIT 0"  # noqa: S608 - quoted names


def _faults_query(table: TableId, fold: Fold) -> str:
    columns = [*_of_events(fold), *(f"CAST(NULL AS VARCHAR) AS {c}" for c in (FAULT, DETAIL))]
    return f"SELECT {', '.join(columns)} FROM {named(table)} LIMIT 0"  # noqa: S608 - quoted names


def _of_events(fold: Fold) -> list[str]:
    """Return the columns that both tables have, with the types of the events."""
    return [*map(postgres_name, fold.stream), f"{postgres_name(fold.version)} AS {VERSION}"]


def _events_query(table: TableId, fold: Fold, ties: Sequence[str]) -> str:
    stream = ", ".join(map(postgres_name, fold.stream))
    order = ", ".join(map(postgres_name, [*fold.stream, fold.version, *ties]))
    return (
        f"SELECT *, row_number() OVER (ORDER BY {order}) AS {_ROW}, "  # noqa: S608 - quoted names
        f"dense_rank() OVER (ORDER BY {stream}) AS {_STREAM} FROM {named(table)} ORDER BY {_ROW}"
    )


def _events(database: Calculator, fold: Fold, types: Mapping[str, str]) -> Iterator[Event]:
    """Yield the events in order; raises TABLE_STOPPED for a time that Python does not have."""
    columns = [_STREAM, *map(postgres_name, types)]
    zoned = [name for name, kind in types.items() if _ZONED in kind]
    try:
        for stream, *values in in_order(database, _EVENTS, _ROW, columns, _CHUNK):
            event = dict(zip(types, values, strict=True))
            for name in zoned:
                event[name] = _in_utc(event[name])
            of, version = tuple(event[name] for name in fold.stream), event[fold.version]
            yield Event(stream, of, None if version is None else int(version), event)
    except (ValueError, OverflowError):
        what = "an event has a time before the year 1 or after the year 9999"
        remedy = "read the events from a view that casts it to text"
        raise CdcError(ErrorKind.TABLE_STOPPED, what, remedy=remedy) from None


def _in_utc(value: object) -> object:
    """Return a time, or those of a list, in the zone UTC of Python itself."""
    if isinstance(value, list):
        return [_in_utc(item) for item in value]
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def _write(database: Calculator, found: Iterator[Folded]) -> None:
    schemas = [database.rows(f"SELECT * FROM {one}").schema for one in (STATES, FAULTS)]  # noqa: S608
    while some := list(islice(found, _CHUNK)):
        for name, schema, rows in zip((STATES, FAULTS), schemas, _rows(some), strict=True):
            columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
            arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
            database.add(name, pa.table(arrays, schema=schema))


def _rows(some: Sequence[Folded]) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Return the rows of the states, and those of the faults."""
    states = [
        (*each.names, each.version, *each.state.values()) for each in some if each.state is not None
    ]
    faults = [(*each.names, *fault) for each in some for fault in each.faults]
    return states, faults
