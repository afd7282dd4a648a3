"""Run SQL over the lake without Spark: delta-rs and DataFusion read the tables at one cut.

Every table is opened at the version that the ledger names for the cut, so a query over several
tables sees the same transactions in all of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from cdc.client.read.published import Entry, cut_at, flagged
from cdc.config import Config
from cdc.derive.engine.input import Input
from cdc.errors import CdcError, ErrorKind
from cdc.events.values.sql_text import fusion_name
from cdc.lake.layout import ledger_path, log_path, operations_path, quarantine_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.table.positions import open_table
from cdc.lake.upkeep.held import held
from cdc.tables import CONTROL_SCHEMA, TableId

_UNSUITED: Final = (
    "it failed while reading rows: an operation, such as a cast or a division, rejected a value"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Holds the rows of a query and the cut they were read at (None: nothing is published yet)."""

    rows: pa.Table
    cut: int | None
    flagged: Sequence[Entry] = field(default=())
    """Tables that the query names and that may differ from the source at the cut."""


def query(config: Config, text: str, *, at: str | None = None) -> Answer:
    """Run one SELECT over ``schema.table`` and ``wal2lake.{ledger,log,quarantine,operations}``.

    ``at`` names the cut (see cdc/client/read/at.py); without it, the newest one is read.
    Raises CONFIG for invalid SQL and for a cut that does not exist.
    """
    with held(config.lake.path):
        return _answer(config, text, cut_at(Ledger(ledger_path(config)), at))


def _answer(config: Config, text: str, row: LedgerRow | None) -> Answer:
    entries = [entry for entry in row.entries if entry.version >= 0] if row else []
    named = [entry for entry in entries if _named(TableId.parse(entry.table), text)]
    context = _Context()
    # A query that names no table, such as ``show tables``, gets all of them.
    for name, table in _tables(config, named or entries, text):
        context.add(name, table)
    rows = context.run(text)
    return Answer(rows=rows, cut=row.cut if row else None, flagged=flagged(named))


Named = tuple[TableId, DeltaTable]


def _tables(config: Config, entries: Sequence[Entry], text: str) -> Iterator[Named]:
    """Yield the tables at the cut's versions, and the control tables that the query mentions."""
    for entry in entries:
        yield TableId.parse(entry.table), Input.of(entry).open()
    own = {
        "ledger": ledger_path,
        "log": log_path,
        "quarantine": quarantine_path,
        "operations": operations_path,
    }
    for name, path in own.items():
        table = open_table(path(config)) if _mentions(name, text) else None
        if table is not None:
            yield TableId(CONTROL_SCHEMA, name), table


def _named(table: TableId, text: str) -> bool:
    return _mentions(fusion_name(table.name)[1:-1], text)


def _mentions(name: str, text: str) -> bool:
    return name.lower() in text.lower()


class _Context:
    """Runs a query in a DataFusion session that has the schemas of the source."""

    def __init__(self) -> None:
        self._builder = QueryBuilder()
        self._schemas = {"public"}
        self._builder.execute("SET datafusion.catalog.information_schema = true").read_all()

    def add(self, name: TableId, table: DeltaTable) -> None:
        """Register the table under its name in the source."""
        if name.schema not in self._schemas:
            self._builder.execute(f"CREATE SCHEMA {fusion_name(name.schema)}").read_all()
            self._schemas.add(name.schema)
        self._builder.register(f"{fusion_name(name.schema)}.{fusion_name(name.name)}", table)

    def run(self, text: str) -> pa.Table:
        """Run the query and read all its rows; raises CONFIG when it fails."""
        try:
            planned = self._builder.execute(text.rstrip("; \n"))
        except Exception as error:  # noqa: BLE001 - delta-rs raises bare Exception here
            raise _refused(error, " ".join(str(error).split())) from None
        try:
            return pa.table(planned.read_all())
        except Exception as error:  # noqa: BLE001 - as above
            raise _refused(error, _UNSUITED) from None


def _refused(error: Exception, detail: str) -> CdcError:
    """Return the error for a failed query.

    ``detail`` must not quote the engine's message about reading, which can hold values of rows;
    that of the planner is only about the query.
    """
    if "No such file" in str(error) or "not found: " in str(error):
        return CdcError(
            ErrorKind.CONFIG,
            "a file of that version no longer exists",
            remedy="choose a later cut; job.vacuum_retention_hours says how long old ones are kept",
        )
    return CdcError(
        ErrorKind.CONFIG,
        "the query cannot be answered",
        detail=detail,
        remedy="write tables as schema.table; list them with wal2lake sql 'show tables'",
    )
