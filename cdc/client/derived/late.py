"""Show the late rows of a derived table."""

import pyarrow as pa

from cdc.client.derived.at_cut import definitions, one_of, published_row
from cdc.config import Config
from cdc.derive.definition.definition import Definition
from cdc.derive.engine.input import Input
from cdc.derive.engine.inputs import columns, rows
from cdc.derive.late.late_rows import EFFECT, OFFSET
from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.upkeep.held import held


def late_rows(config: Config, name: str) -> tuple[LedgerRow, pa.Table]:
    """Return the newest cut and the late rows of a table, in the order of the log.

    Raises CONFIG if its definition has no rule for them.
    """
    with held(config.lake.path):
        row = published_row(config, None)
        definition = one_of(definitions(config, row), name)
        if definition.late is None:
            raise CdcError(
                ErrorKind.CONFIG,
                f"{name} has no late rows",
                remedy="write late: {column: ts, allowed: 10 minutes} in its definition",
            )
        return row, _rows(definition, row)


def _rows(definition: Definition, row: LedgerRow) -> pa.Table:
    entry = None if definition.late is None else row.derived_entry(str(definition.late.rows))
    if entry is None or entry.version < 0:
        raise CdcError(
            ErrorKind.CONFIG,
            f"cut {row.cut} has no late rows of {definition.table} yet",
            remedy="wait for a later cut, or see wal2lake derived list",
        )
    opened = Input.of(entry).open()
    return rows(opened, columns(opened), f"ORDER BY {OFFSET}, {EFFECT}").read_all()
