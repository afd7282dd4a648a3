"""Reads the changed rows of an input once for all derived tables that ask for them at a cut."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from cdc.derive.engine.input import Input
from cdc.lake.changed.changed_rows import ChangedRows, changed_rows


@dataclass(frozen=True, slots=True)
class Known:
    """Holds the rows by which a table's version ``new`` differs from an older one."""

    old: Input
    new: int
    rows: ChangedRows

    def __len__(self) -> int:
        return len(self.rows.removed) + len(self.rows.added)

    def has(self, old: Input, new: int, columns: Sequence[str]) -> bool:
        """Return whether these columns of these versions of one table are known."""
        return (self.old, self.new) == (old, new) and set(columns) <= set(
            self.rows.added.schema.names
        )


@dataclass(slots=True)
class KnownChanges:
    """Keeps the changed rows that were read last of each table; any thread may ask."""

    _known: dict[str, Known] = field(default_factory=dict)
    _columns: dict[str, tuple[str, ...]] = field(default_factory=dict)  # asked for so far, by path
    _lock: Lock = field(default_factory=Lock)

    def rows(self, old: Input, new: int, columns: Sequence[str], most: int) -> Known | None:
        """Return the rows by which a table's version ``new`` differs, as ``changed_rows`` does.

        They have these columns, and those that others ask for.
        """
        with self._lock:  # another thread that asks for the same waits, and reads nothing
            known = self._known.get(old.path)
            if known is None or not known.has(old, new, columns):
                known = self._read(old, new, columns, most)
        return None if known is None or len(known) > most else known

    def clear(self) -> None:
        """Give up all rows."""
        with self._lock:
            self._known.clear()

    def _read(self, old: Input, new: int, columns: Sequence[str], most: int) -> Known | None:
        """Read the columns that others have asked for as well, if they still are the table's."""
        self._known.pop(old.path, None)
        wider = tuple(dict.fromkeys([*self._columns.get(old.path, ()), *columns]))
        for names in dict.fromkeys([wider, tuple(columns)]):
            found = changed_rows(old.path, old.version, new, names, most)
            if found is not None:
                self._columns[old.path] = names
                self._known[old.path] = Known(old, new, found)
                return self._known[old.path]
        return None
