"""Finds the late rows that an operator admits, and says so in rows of the same table."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import structlog
from deltalake import DeltaTable

from cdc.derive.definition.late_condition import OPTION, condition
from cdc.derive.engine.calculator import Calculator, calculator
from cdc.derive.engine.inputs import columns as columns_of
from cdc.derive.engine.inputs import rows as rows_of
from cdc.derive.engine.late_facts import ADMITTED_AT, FACTS, REASON
from cdc.derive.late.late_rows import CUT, EFFECT, OFFSET, Admitted, Effect, Place
from cdc.derive.late.notes import ADMITTED, open_notes, place_columns
from cdc.derive.late.rule import END, START, LateRule
from cdc.errors import CdcError, ErrorKind
from cdc.lake.table.plain_values import plain_values
from cdc.state.admissions import Admission

_NOTES: Final = '"wal2lake_notes"'
_CHOSEN: Final = '"_cdc_chosen"'
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Holds the late rows that an admission is about, and counts those that meet its condition."""

    rows: pa.Table  # of each place that is not admitted yet its newest late row
    matching: int  # late rows that meet the condition, also those that are admitted already


@dataclass(frozen=True, slots=True)
class LateTable:
    """Reads a table of late rows at one version; ``key`` is that of the captured table."""

    table: DeltaTable
    rule: LateRule
    key: Sequence[str]

    def chosen(self, asked: Admission, memory_mb: int) -> Chosen:
        """Return what an admission is about. Raises CONFIG if its condition is not valid."""
        names = columns_of(self.table)
        text, problems = condition(asked.where, names)
        for problem in problems:
            raise problem.error()
        meets = f"COALESCE({text}, FALSE) AND {CUT} <= {asked.cut:d}"
        with calculator(memory_mb) as database:
            database.keep(_NOTES, rows_of(self.table, names))
            _refuse_unfit(database, text)
            all_ones = f"{_NOTES} WHERE NOT ({ADMITTED}) AND {meets}"
            matching = database.count(all_ones)
            return Chosen(rows=database.rows(self._newest(meets)), matching=matching)

    def _newest(self, meets: str) -> str:
        """Return the query for the newest late row of each place that has a chosen one."""
        within = f"PARTITION BY {place_columns(self.rule, self.key)}"
        order = f"{OFFSET} DESC, {EFFECT} = '{Effect.LEFT_OUT}' DESC"
        marked = f"SELECT *, {meets} AS {_CHOSEN} FROM ({open_notes(_NOTES, self.rule, self.key)})"  # noqa: S608
        first = f"row_number() OVER ({within} ORDER BY {order}) = 1"
        asked = f"bool_or({_CHOSEN}) OVER ({within})"
        return f"SELECT * EXCLUDE ({_CHOSEN}) FROM ({marked}) QUALIFY {first} AND {asked}"  # noqa: S608

    def admitted(self, rows: pa.Table) -> list[Admitted]:
        """Return what rows that say so admit, oldest first."""
        found: dict[int, set[Place]] = {}
        for where, upto in zip(self.places(rows), rows[OFFSET].to_pylist(), strict=True):
            found.setdefault(upto, set()).add(where)
        return [Admitted(upto, frozenset(places)) for upto, places in sorted(found.items())]

    def admitted_rows(self) -> pa.Table:
        """Return the rows that say what was admitted."""
        names = [*self.rule.place(self.key), OFFSET]
        return rows_of(self.table, names, f"WHERE {ADMITTED}").read_all()

    def frozen(self) -> set[Place]:
        """Return the places that have a row or none in a final window, whatever the source has."""
        names = [*self.rule.place(self.key), OFFSET, EFFECT]
        rows = rows_of(self.table, names).read_all()
        upto: dict[Place, int] = {}
        noted: dict[Place, int] = {}
        for *where, offset, effect in zip(*map(plain_values, rows.columns), strict=True):
            seen = upto if effect == Effect.ADMITTED else noted
            seen[tuple(where)] = max(offset, seen.get(tuple(where), offset))
        return {one for one, offset in noted.items() if offset > upto.get(one, -1)}

    def carried(self) -> pa.Table | None:
        """Return the rows that say what was admitted, with the windows that the rule has now.

        None if the table has none that fit it.
        """
        names = columns_of(self.table)
        if not {self.rule.window.time, *self.key, REASON} <= set(names):
            return None
        rows = rows_of(self.table, names, f"WHERE {ADMITTED}").read_all()
        if self.rule.puts_hops_aside:
            return rows  # a row has several windows, of which it names one
        times = plain_values(rows[self.rule.window.time])
        for name, of in ((START, self.rule.start), (END, self.rule.last_end)):
            rows = _set(rows, name, [of(time) for time in times])
        return rows

    def places(self, rows: pa.Table) -> list[Place]:
        """Return the place of each row."""
        names = self.rule.place(self.key)
        return list(zip(*(plain_values(rows[name]) for name in names), strict=True))


def _refuse_unfit(database: Calculator, text: str) -> None:
    """Raise CONFIG for a condition that does not fit the types of late rows."""
    try:
        ((_, kind),) = database.types(f"SELECT ({text}) AS one FROM {_NOTES} WHERE {text}")  # noqa: S608
    except CdcError as error:
        raise CdcError(
            ErrorKind.CONFIG, f"{OPTION}: {error.message}", remedy="correct the condition"
        ) from None
    if kind != "BOOLEAN":
        raise CdcError(
            ErrorKind.CONFIG,
            f"{OPTION}: it is {kind}, which is no condition",
            remedy="compare it, such as id = 7",
        )


@dataclass(frozen=True, slots=True)
class Taken:
    """Says what is admitted in a step: rows that say so, their places, and why, for the mark."""

    rows: Sequence[pa.Table] = ()
    places: frozenset[Place] = frozenset()
    why: Sequence[dict[str, Any]] = ()


NOTHING: Final = Taken()


def take(late: LateTable, asked: Sequence[Admission], cut: int, upto: int, memory_mb: int) -> Taken:
    """Return what admissions take from the cut on, of what was late up to an offset.

    One that does not fit the table any more admits nothing.
    """
    taken = NOTHING
    for one in asked:
        try:
            rows = late.chosen(one, memory_mb).rows
        except CdcError as error:
            logger.warning("nothing is admitted", table=one.table, reason=error.message)
            continue
        new = [place not in taken.places for place in late.places(rows)]
        rows = rows.filter(pa.array(new, pa.bool_()))
        if len(rows):
            taken = Taken(
                rows=[*taken.rows, _saying(rows, one, cut, upto)],
                places=taken.places | set(late.places(rows)),
                why=[*taken.why, {**asdict(one), "rows": len(rows)}],
            )
    return taken


def _saying(rows: pa.Table, asked: Admission, cut: int, upto: int) -> pa.Table:
    """Return the rows that say: what was late up to an offset counts from the cut on."""
    values: dict[str, Any] = {
        "_op": None,
        EFFECT: Effect.ADMITTED.value,
        CUT: cut,
        "_lsn": None,
        OFFSET: upto,
        ADMITTED_AT: datetime.fromisoformat(asked.asked_at),
        REASON: asked.reason,
    }
    for name, value in values.items():
        rows = _set(rows, name, [value] * len(rows))
    return rows


def _set(rows: pa.Table, name: str, values: Sequence[object]) -> pa.Table:
    column = pa.array(list(values), FACTS.field(name).type)
    number = rows.schema.get_field_index(name)
    if number < 0:
        return rows.append_column(name, column)
    return rows.set_column(number, name, column)


def fitted(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """Return rows with the columns that a table of late rows has now; new ones are NULL."""
    schema = pa.schema([*columns, *FACTS])
    names = set(rows.column_names)
    arrays = [
        rows[one.name].cast(one.type) if one.name in names else pa.nulls(len(rows), one.type)
        for one in schema
    ]
    return pa.table(arrays, schema=schema)
