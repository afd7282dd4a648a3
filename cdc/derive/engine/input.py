"""Names a table of the lake at one version: an input of a query, or what was made of it."""

from dataclasses import dataclass

from deltalake import DeltaTable

from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import TableEntry
from cdc.lake.table.open_version import open_version


@dataclass(frozen=True, slots=True)
class Input:
    """Names a table of the lake at one version."""

    path: str
    version: int
    delta_id: str = ""  # of the Delta table; empty where it is not known

    @classmethod
    def of(cls, entry: TableEntry | DerivedEntry) -> "Input":
        """Return the table of a cut's entry."""
        return cls(entry.path, entry.version, entry.delta_id)

    def open(self) -> DeltaTable:
        """Open it; raises CONFIG if the version no longer exists, or is another table's now."""
        return open_version(self.path, self.version, self.delta_id)
