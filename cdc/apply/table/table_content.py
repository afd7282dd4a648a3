"""Describe what a table of the lake holds at one moment."""

from collections.abc import Callable
from dataclasses import dataclass

from cdc.events.schema import TableSchema
from cdc.events.structure.structure import Structure
from cdc.events.values.lsn import NO_LSN
from cdc.lake.table.positions import Position

Catalogue = Callable[[int], Structure | None]
"""The structure that the source's catalogue has of an OID now; None when it has no such table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableContent:
    """Holds columns, the source's structure they follow, and up to where events are applied."""

    schema: TableSchema
    position: Position
    structure: Structure | None = None  # None where the table is older than notes

    @property
    def was_read(self) -> bool:
        """Return whether the first snapshot brought a row of it, or it was read since."""
        return self.position.reads > 0 or self.position.reading != 0

    def has_other_snapshot(self, lsns: frozenset[int], slot_lsn: int | None) -> bool:
        """Return whether reads at these LSNs are not all of the table's one snapshot.

        All reads of one snapshot have one LSN (``NO_LSN`` for an incremental one). Those of the
        slot's own snapshot come first, with an LSN not beyond ``slot_lsn``, the slot's beginning.
        """
        known = {self.position.snapshot_lsn} - {None}
        late = not known and self.position.rows_applied > 0
        other = slot_lsn is not None and max(lsns) > slot_lsn
        return late or other or NO_LSN in lsns or len(lsns | known) > 1
