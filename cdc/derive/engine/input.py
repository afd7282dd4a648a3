"""Names a table of the lake at one version: an input of a query, or what was made of it."""

from dataclasses import dataclass

from deltalake import DeltaTable

from cdc.lake.table.open_version import open_version


@dataclass(frozen=True, slots=True)
class Input:
    """Names a table of the lake at one version."""

    path: str
    version: int

    def open(self) -> DeltaTable:
        """Open it; raises CONFIG if the version no longer exists."""
        return open_version(self.path, self.version)
