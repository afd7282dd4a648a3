"""Finds the matches of a pattern in a table that is loaded, for the query over them.

DuckDB sorts the rows and computes what each row gives by itself; the matcher goes through them,
one partition after the other. Memory is needed for the rows of one partition.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from cdc.derive.engine.calculator import Calculator, named
from cdc.derive.engine.chunks import in_order
from cdc.derive.pattern.beginning import beginning
from cdc.derive.pattern.evaluation import Evaluator, Kind
from cdc.derive.pattern.matcher import Budget, Matcher
from cdc.derive.pattern.measures import MATCH, MATCHES, ROW, ROWS, VARIABLE
from cdc.derive.pattern.pattern import Pattern
from cdc.derive.pattern.program import Take
from cdc.derive.pattern.running import Running
from cdc.errors import CdcError, ErrorKind
from cdc.events.values.sql_text import postgres_name
from cdc.tables import TableId

_PARTITION: Final = "_cdc_partition"
_TIME: Final = "_cdc_time"
_CHUNK: Final = 50_000
"""How many rows are read, and how many are written, at a time."""
_FOUND: Final = pa.schema([(MATCH, pa.int64()), (ROW, pa.int64()), (VARIABLE, pa.string())])
_KINDS: Final = (
    (re.compile("BOOLEAN"), Kind.BOOLEAN),
    (re.compile("(TINY|SMALL|BIG)INT|INTEGER|FLOAT|DOUBLE|DECIMAL.*"), Kind.NUMBER),
    (re.compile("VARCHAR"), Kind.TEXT),
    (re.compile("TIMESTAMP( WITH TIME ZONE)?"), Kind.TIME),
    (re.compile("DATE"), Kind.DATE),
    (re.compile("INTERVAL"), Kind.INTERVAL),
    (re.compile('"NULL"'), Kind.NULL),
)
_MOMENTS: Final = frozenset({Kind.TIME, Kind.DATE, Kind.INTERVAL})
Found = Iterator[tuple[int, int, str]]
"""The number of a match, and the row and variable of each of its rows."""


def find_matches(
    database: Calculator, table: TableId, pattern: Pattern, ties: Sequence[str]
) -> None:
    """Create the tables ROWS and MATCHES from the loaded table.

    ``ties`` are columns that put rows of equal order into one order, whatever the files have. Rows
    whose first column of ORDER BY is NULL are left out. Raises CONFIG for types that do not fit,
    and TABLE_STOPPED where a partition is too large or needs too many steps.
    """
    kinds = _kinds(database, table, pattern)
    matcher = _matcher(pattern, kinds)
    database.run(f"DROP TABLE IF EXISTS {ROWS}")
    database.run(f"DROP TABLE IF EXISTS {MATCHES}")
    database.run(f"CREATE TABLE {ROWS} AS {_rows_query(table, pattern, kinds, ties)}")
    database.keep(MATCHES, _FOUND.empty_table())
    _refuse_large(database, pattern)
    found = _found(database, pattern, matcher)
    try:
        while batch := list(islice(found, _CHUNK)):
            _write(database, batch)
    except ArithmeticError:
        what = "its pattern failed: a number is out of the range of exact numbers"
        raise CdcError(ErrorKind.TABLE_STOPPED, what, remedy="cast to double precision") from None


def _kinds(database: Calculator, table: TableId, pattern: Pattern) -> list[Kind]:
    """Return what the columns of the conditions are; check that all columns are there."""
    order = postgres_name(pattern.order[0])
    listed = ", ".join([*pattern.columns, *map(postgres_name, pattern.partition + pattern.order)])
    types = [kind for _, kind in database.types(f"SELECT {listed} FROM {named(table)}")]  # noqa: S608
    kinds = [_kind(kind, text) for kind, text in zip(types, pattern.columns, strict=False)]
    time = types[len(pattern.columns) + len(pattern.partition)]
    if pattern.bounds.within is not None and _known(time) not in {Kind.TIME, Kind.DATE}:
        raise CdcError(
            ErrorKind.CONFIG,
            f"within needs a time, and ORDER BY begins with {order}, which is {time.lower()}",
            remedy="order by a timestamp first, or give max_partition_rows instead of within",
        )
    return kinds


def _kind(name: str, text: str) -> Kind:
    kind = _known(name)
    if kind is None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"DEFINE has {text}, which is of type {name.lower()}",
            remedy="cast it, as to text",
        )
    return kind


def _known(name: str) -> Kind | None:
    return next((kind for pattern, kind in _KINDS if pattern.fullmatch(name)), None)


def _matcher(pattern: Pattern, kinds: Sequence[Kind]) -> Matcher:
    evaluator = Evaluator(kinds, pattern.slots)
    names = {step.variable for step in pattern.program if isinstance(step, Take)}
    return Matcher(
        program=pattern.program,
        conditions={name: evaluator.condition(name, term) for name, term in pattern.conditions},
        running=Running(pattern.slots, sorted(names)),
        remembers=bool(pattern.slots),
        skip=pattern.skip,
        target=pattern.target,
        begins=beginning(pattern.program, dict(pattern.conditions)),
        within=pattern.bounds.within,
    )


def _rows_query(
    table: TableId, pattern: Pattern, kinds: Sequence[Kind], ties: Sequence[str]
) -> str:
    first = postgres_name(pattern.order[0])
    partition = [postgres_name(name) for name in pattern.partition]
    order = [*partition, *map(postgres_name, [*pattern.order, *ties])]
    columns = [
        f"epoch_us({text}) AS {_column(i)}" if kind in _MOMENTS else f"{text} AS {_column(i)}"
        for i, (text, kind) in enumerate(zip(pattern.columns, kinds, strict=True))
    ]
    time = f"epoch_us({first})" if pattern.bounds.within is not None else "0"
    added = [
        f"row_number() OVER (ORDER BY {', '.join(order)}) AS {ROW}",
        f"{_number(partition)} AS {_PARTITION}",
        f"{time} AS {_TIME}",
        *columns,
    ]
    return (
        f"SELECT *, {', '.join(added)} FROM {named(table)} "  # noqa: S608 - of a checked definition
        f"WHERE {first} IS NOT NULL ORDER BY {ROW}"
    )


def _number(partition: Sequence[str]) -> str:
    return f"dense_rank() OVER (ORDER BY {', '.join(partition)})" if partition else "1"


def _column(i: int) -> str:
    return f"_cdc_c{i}"


def _refuse_large(database: Calculator, pattern: Pattern) -> None:
    ((most,),) = database.values(
        f"SELECT max(n) FROM (SELECT count(*) AS n FROM {ROWS} GROUP BY {_PARTITION})"  # noqa: S608
    )
    if most is not None and int(str(most)) > pattern.bounds.most_rows:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"a partition of its pattern has {most:,} rows, and may have "
            f"{pattern.bounds.most_rows:,}",
            remedy="partition by more columns, or raise max_partition_rows in the definition",
        )


def _found(database: Calculator, pattern: Pattern, matcher: Matcher) -> Found:
    budget, number = Budget(), 0
    for _, group in groupby(_rows(database, len(pattern.columns)), itemgetter(-2)):
        rows = list(group)
        times = [row[-1] for row in rows]
        begin = rows[0][-3]
        for match in matcher.matches(rows, times, budget):
            number += 1
            for i, variable in enumerate(match.variables, begin + match.first):
                yield number, i, variable


def _rows(database: Calculator, count: int) -> Iterator[tuple[Any, ...]]:
    """Return the columns of the conditions, and then row, partition and time, of the rows."""
    columns = [*map(_column, range(count)), ROW, _PARTITION, _TIME]
    return in_order(database, ROWS, ROW, columns, _CHUNK)


def _write(database: Calculator, found: Sequence[tuple[int, int, str]]) -> None:
    columns = zip(*found, strict=True)
    arrays = [pa.array(each, field.type) for each, field in zip(columns, _FOUND, strict=True)]
    database.add(MATCHES, pa.table(arrays, schema=_FOUND))
