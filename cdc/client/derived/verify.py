"""Verify derived tables: calculate each again at a cut, and compare all rows.

With the source as the witness, its own Postgres runs the definition's SELECT in a snapshot whose
LSN is a published cut; nothing of wal2lake calculates or reads there.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Context, Decimal
from functools import partial
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from cdc.client.derived.at_cut import (
    calculated,
    definitions,
    input_at,
    one_of,
    published_row,
)
from cdc.client.moment import moment
from cdc.client.read.published import is_flagged, warning
from cdc.config import Config
from cdc.derive.definition.definition import Definition
from cdc.derive.definition.inlined import beyond_sql, inlined
from cdc.derive.engine.input import Input
from cdc.derive.engine.inputs import columns, rows
from cdc.derive.history.history import OWN, at_lsn
from cdc.derive.late.shown import shown_by_source
from cdc.derive.sql.collation import text_ordered
from cdc.derive.step.judged import watermark_at
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.upkeep.held import held
from cdc.source.server.connection import Connection, translated
from cdc.state.pipeline import Pipeline
from cdc.tables import TableId

_EXACT: Final = Context(prec=100)
Rows = Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedVerdict:
    """Says how a derived table compares with its query at a cut."""

    table: str
    rows: int = 0  # that the query gives
    missing: int = 0  # of them, not in the table
    extra: int = 0  # in the table only
    reason: str = ""  # why it could not be compared

    @property
    def equal(self) -> bool:
        """Return whether the table has the rows of its query and no others."""
        return not (self.missing or self.extra or self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedReport:
    """Gives the verdicts at one cut and names the witness: ``local``, ``spark`` or ``source``."""

    cut: int
    witness: str
    tables: Sequence[DerivedVerdict]

    @property
    def equal(self) -> bool:
        """Return whether every table is equal."""
        return all(table.equal for table in self.tables)


def verify_locally(config: Config, names: Sequence[str], at: str | None) -> DerivedReport:
    """Calculate the tables again at the cut and compare; without names, all of them."""
    with held(config.lake.path):
        row = published_row(config, at)
        verdicts = [
            _compared(row, one, partial(_locally, config, row))
            for one in chosen(definitions(config, row), names)
        ]
    return DerivedReport(cut=row.cut, witness="local", tables=verdicts)


def verify_by_source(
    pipeline: Pipeline, names: Sequence[str], *, timeout: float, tell: Callable[[str], None]
) -> DerivedReport:
    """Let the source calculate the tables at a cut of now and compare; without names, all."""
    config = pipeline.config
    with held(config.lake.path), moment(pipeline, timeout=timeout, tell=tell) as at:
        verdicts = []
        known, texts = definitions(config, at.cut), _texts(at.cut)
        for one in chosen(known, names):
            beyond = beyond_sql(one, known)
            if beyond is not None:
                reason = no_sql("the source", beyond)
                verdicts.append(DerivedVerdict(table=str(one.table), reason=reason))
                continue
            tell(f"comparing {one.table}")
            query = _with_final(one, at.cut, text_ordered(inlined(one, known), texts))
            ask = partial(_by_source, at.connection, query)
            verdicts.append(_compared(at.cut, one, ask))
    return DerivedReport(cut=at.cut.cut, witness="source", tables=verdicts)


def chosen(known: Mapping[TableId, Definition], names: Sequence[str]) -> list[Definition]:
    """Return the tables of these names; without any, all but those of late rows.

    These follow from the log, and no query gives them: a rebuild compares them with it. Raises
    CONFIG for an unknown name.
    """
    queries = [one for one in known.values() if one.late_rows is None]
    return [one_of(known, name) for name in names] or queries


def _with_final(definition: Definition, row: LedgerRow, query: str) -> str:
    """Return the query for the source with what the watermark of the cut adds."""
    if definition.late is None:
        return query
    watermark = watermark_at(
        definition, {definition.late.rows: input_at(definition.late.rows, row).open()}
    )
    return shown_by_source(definition.late, query, watermark)


def no_sql(witness: str, definition: Definition) -> str:
    """Return why a witness cannot calculate a definition."""
    if definition.late is not None or definition.late_rows is not None:
        why = f"does not know which rows of {definition.table} are late"
    else:
        why = f"cannot calculate {_kind(definition)}, as {definition.table} is"
    return f"{witness} {why}: verify it locally"


def _kind(definition: Definition) -> str:
    if definition.history is not None:
        return "histories"
    return "patterns" if definition.fold is None else "folds"


def entry_at(row: LedgerRow, definition: Definition) -> DerivedEntry | str:
    """Return what the cut has of the table, or why that is not to be compared with its query."""
    name = str(definition.table)
    if definition.late_rows is not None:
        return "it follows from the log: wal2lake derived rebuild compares it"
    entry = row.derived_entry(name)
    if entry is None:
        return f"cut {row.cut} does not have it"
    if is_flagged(entry):
        return warning(entry, row.cut)
    if entry.definition != definition.hash:
        return "its definition has changed: run apply-config"
    return entry


def _compared(
    row: LedgerRow, definition: Definition, calculate: Callable[[Definition], Rows]
) -> DerivedVerdict:
    name, entry = str(definition.table), entry_at(row, definition)
    if isinstance(entry, str):
        return DerivedVerdict(table=name, reason=entry)
    wanted, found = _counted(calculate(definition)), _counted(_stored(row, definition, entry))
    return DerivedVerdict(
        table=name,
        rows=wanted.total(),
        missing=(wanted - found).total(),
        extra=(found - wanted).total(),
    )


def _locally(config: Config, row: LedgerRow, definition: Definition) -> Rows:
    if definition.history is not None:
        table, entry = input_at(definition.inputs[0], row), entry_at(row, definition)
        assert not isinstance(entry, str)  # noqa: S101 - asked before
        yield from _streamed(rows(table.open(), _own_columns(_opened(entry))))
        return
    with calculated(config, definition, row) as (database, query):
        yield from database.rows(query).to_pylist()


def _texts(row: LedgerRow) -> set[str]:
    """Return the names of all columns of text."""
    opened = (Input.of(e).open() for e in row.entries if e.version >= 0)
    fields = (field for table in opened for field in table.schema().fields)
    return {field.name for field in fields if getattr(field.type, "type", "") == "string"}


def _by_source(connection: Connection, query: str, definition: Definition) -> Rows:
    with translated(f"calculating {definition.table}"), connection.cursor() as cursor:
        # The text comes from a checked definition, which is printed from an allow-list.
        cursor.execute(query.encode())
        for row in cursor:
            yield dict(zip(definition.columns, row, strict=True))


def _stored(row: LedgerRow, definition: Definition, entry: DerivedEntry) -> Rows:
    """Return the stored rows; of a history those at the cut, which are the rows of its table."""
    table = _opened(entry)
    if definition.history is None:
        return _streamed(rows(table, columns(table)))
    where = f"WHERE {at_lsn(row.epoch, row.lsn)}"
    return _streamed(rows(table, _own_columns(table), where))


def _opened(entry: DerivedEntry) -> DeltaTable:
    return Input.of(entry).open()


def _own_columns(history: DeltaTable) -> list[str]:
    """Return the columns that a history has of its table, which may have got more."""
    return [name for name in columns(history) if name not in OWN]


def _streamed(batches: pa.RecordBatchReader) -> Rows:
    for batch in batches:
        yield from pa.RecordBatch.to_pylist(batch)


def _counted(rows: Rows) -> "Counter[str]":
    return Counter(repr([plain(value) for value in row.values()]) for row in rows)


def plain(value: object) -> object:
    """Return a value that is equal for equal values of two engines, whatever their types are.

    Numbers are equal at any scale, and instants in any zone.
    """
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat()
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return f"{_EXACT.normalize(Decimal(value)):f}"
    return value
