"""SQL over the lake without Spark: delta-rs and DataFusion read the tables at one cut.

Every table is opened at the version that the ledger names for the cut, so a query over several
tables sees the same transactions in all of them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path, log_path, operations_path, quarantine_path
from cdc.lake.ledger import Ledger, LedgerRow
from cdc.lake.progress import open_table
from cdc.source.snapshot import parse_lsn
from cdc.tables import CONTROL_SCHEMA, TableId

LSN: Final = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Rows of a query and the cut they were read at (None: nothing is published yet)."""

    rows: pa.Table
    cut: int | None


def query(config: Config, text: str, *, at: str | None = None) -> Answer:
    """Run one SELECT over ``schema.table`` and ``wal2lake.{ledger,log,quarantine,operations}``.

    ``at`` is the number of a cut or an LSN (``0/16B3748``); without it, the newest cut.
    Raises CONFIG for SQL that is wrong and for a cut that is not there.
    """
    row = cut_at(Ledger(ledger_path(config)), at)
    context = _Context()
    for name, table in _tables(config, row, text):
        context.add(name, table)
    return Answer(rows=context.run(text), cut=row.cut if row else None)


def cut_at(ledger: Ledger, at: str | None) -> LedgerRow | None:
    """The newest cut, or the one that ``at`` names."""
    if at is None:
        return ledger.last()
    lsn, number = LSN.fullmatch(at), at.isdecimal()
    if not lsn and not number:
        raise CdcError(
            ErrorKind.CONFIG,
            f"--at {at!r} is neither the number of a cut nor an LSN",
            remedy="write it as 17 or as 0/16B3748; wal2lake sql 'select * from wal2lake.ledger'",
        )
    found = _newest(ledger, int(at)) if number else _newest_before(ledger, parse_lsn(at))
    if found is None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"the ledger has no cut at {at}",
            remedy="see the cuts there are: wal2lake sql 'select * from wal2lake.ledger'",
        )
    return found


def _newest(ledger: Ledger, number: int) -> LedgerRow | None:
    return next((row for row in ledger.rows(after=number - 1) if row.cut == number), None)


def _newest_before(ledger: Ledger, lsn: int) -> LedgerRow | None:
    """The last cut that holds no commit beyond the LSN."""
    found = None
    for row in ledger.rows():
        if row.lsn is not None and row.lsn <= lsn:
            found = row
    return found


Named = tuple[TableId, DeltaTable]


def _tables(config: Config, row: LedgerRow | None, text: str) -> Iterator[Named]:
    """The tables that the query may mean; all of them when it names none (``show tables``)."""
    entries = list(row.tables) if row else []
    named = [entry for entry in entries if _named(TableId.parse(entry.table), text)]
    for entry in named or entries:
        if entry.version >= 0:
            yield TableId.parse(entry.table), _open(entry.path, entry.version)
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
    return _mentions(table.name.replace('"', '""'), text)


def _mentions(name: str, text: str) -> bool:
    return name.lower() in text.lower()


def _open(path: str, version: int) -> DeltaTable:
    try:
        return DeltaTable(path, version=version)
    except DeltaError as error:
        raise CdcError(
            ErrorKind.CONFIG,
            f"version {version} of {path} is not there any more",
            detail=str(error).split("\n", maxsplit=1)[0].lower(),
            remedy="choose a later cut; job.vacuum_retention_hours says how long old ones stay",
        ) from None


class _Context:
    """A DataFusion session in which the schemas of the source exist."""

    def __init__(self) -> None:
        self._builder = QueryBuilder()
        self._schemas = {"public"}
        self._builder.execute("SET datafusion.catalog.information_schema = true").read_all()

    def add(self, name: TableId, table: DeltaTable) -> None:
        if name.schema not in self._schemas:
            self._builder.execute(f"CREATE SCHEMA {quoted(name.schema)}").read_all()
            self._schemas.add(name.schema)
        self._builder.register(f"{quoted(name.schema)}.{quoted(name.name)}", table)

    def run(self, text: str) -> pa.Table:
        try:
            return pa.table(self._builder.execute(text.rstrip("; \n")).read_all())
        except Exception as error:  # noqa: BLE001 - delta-rs raises bare Exception here
            raise _refused(error) from None


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _refused(error: Exception) -> CdcError:
    if "No such file" in str(error) or "not found: " in str(error):
        return CdcError(
            ErrorKind.CONFIG,
            "a file of that version is not there any more",
            remedy="choose a later cut; job.vacuum_retention_hours says how long old ones stay",
        )
    return CdcError(
        ErrorKind.CONFIG,
        "the query cannot be answered",
        detail=" ".join(str(error).split()),
        remedy="tables are named schema.table; wal2lake sql 'show tables' lists them",
    )
