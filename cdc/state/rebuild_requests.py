"""Requests to the job to calculate a derived table anew: a file for each, until it is done."""

from dataclasses import dataclass
from pathlib import Path

from cdc.state.atomic_file import write_shared
from cdc.tables import TableId


@dataclass(frozen=True, slots=True)
class RebuildRequests:
    """The requests in one state directory."""

    state_dir: Path

    def ask(self, table: TableId) -> None:
        """Ask for it; a request that waits already stays."""
        file = self._file(table)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_shared(file, str(table))

    def is_asked(self, table: TableId) -> bool:
        """Return whether a request waits."""
        return self._file(table).exists()

    def done(self, table: TableId) -> None:
        """End the request, if there is one."""
        self._file(table).unlink(missing_ok=True)

    def _file(self, table: TableId) -> Path:
        """Return a file for any table's name."""
        return self.state_dir / "rebuilds" / str(table).encode().hex()
