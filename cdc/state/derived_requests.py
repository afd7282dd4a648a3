"""Keeps what operators ask of the job about derived tables: a file per request, while it holds."""

from dataclasses import dataclass
from pathlib import Path

from cdc.state.atomic_file import write_shared
from cdc.tables import TableId


@dataclass(frozen=True, slots=True)
class DerivedRequests:
    """Keeps the requests of one kind, below one directory."""

    folder: Path

    def ask(self, table: TableId) -> None:
        """Begin a request; one that holds already stays."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_shared(self._file(table), str(table))

    def is_asked(self, table: TableId) -> bool:
        """Return whether there is a request."""
        return self._file(table).exists()

    def done(self, table: TableId) -> None:
        """End the request, if there is one."""
        self._file(table).unlink(missing_ok=True)

    def _file(self, table: TableId) -> Path:
        """Return a file for any table's name."""
        return self.folder / str(table).encode().hex()


def rebuilds(state_dir: Path) -> DerivedRequests:
    """Return the requests to calculate a table anew; the job ends each when it is done."""
    return DerivedRequests(state_dir / "rebuilds")


def pauses(state_dir: Path) -> DerivedRequests:
    """Return the requests to leave a table at the cut where it is, until they are taken back."""
    return DerivedRequests(state_dir / "pauses")
