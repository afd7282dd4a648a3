"""Puts the small lake of the tests of derived tables into an object store."""

from dataclasses import dataclass

from cdc.tables import TableId
from tests.unit.derive.small_lake import SmallLake


@dataclass
class StoredLake(SmallLake):
    """Only scratch space and requests are on the disk."""

    lake: str = ""

    def path(self, table: TableId) -> str:
        """Return where the table is."""
        return f"{self.lake}/{table.schema}/{table.name}"
