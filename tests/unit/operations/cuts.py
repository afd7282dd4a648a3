"""Makes a cut as the ledger has it."""

from datetime import UTC, datetime

from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import LedgerRow, TableEntry


def cut_of(
    tables: tuple[TableEntry, ...] = (), derived: tuple[DerivedEntry, ...] = ()
) -> LedgerRow:
    now = datetime.now(UTC)
    return LedgerRow(
        cut=1,
        epoch=1,
        lsn=1,
        committed_at=now,
        published_at=now,
        transactions=1,
        tables=tables,
        derived=derived,
    )
