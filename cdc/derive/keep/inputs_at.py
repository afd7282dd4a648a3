"""Decides from a cut whether a derived table can be brought there, and what it inherits. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cdc.derive.definition.definition import Definition
from cdc.derive.engine.input import Input
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import LedgerRow
from cdc.tables import TableId, TableState

_EQUAL: Final = TableState.STREAMING.value
_EMPTY: Final = frozenset({TableState.SNAPSHOTTING.value, TableState.BUILDING.value})
_FOLLOWS: Final = frozenset({_EQUAL, TableState.DEGRADED.value})
"""States of a captured table that has all events up to its offset; others are behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Names the inputs of a table at a cut, or says why the table cannot be brought to it."""

    at: Mapping[TableId, Input]
    time: datetime | None = None  # of the cut, for a table whose rows depend on it
    missing: str = ""  # why the table cannot be brought to the cut; empty if it can
    flagged: str = ""  # which input may differ from its source or query; empty for none

    def give_the_rows_of(self, other: "Inputs") -> bool:
        """Return whether a query has the same rows over these inputs as over the other ones."""
        return (self.at, self.time) == (other.at, other.time)


@dataclass(frozen=True, slots=True)
class Tried:
    """Holds the inputs that a table was last calculated from, and why that failed; empty if not."""

    inputs: Inputs
    failure: str = ""


def inputs_at(
    definition: Definition, row: LedgerRow, derived: Mapping[str, DerivedEntry]
) -> Inputs:
    """Return the definition's inputs at the cut of ``row``.

    ``derived`` has the derived tables so far, of which an input must be at the cut already.
    """
    found, missing, flagged = {}, [], []
    time = row.committed_at if definition.is_timed else None
    if definition.is_timed and time is None:
        missing.append("the cut has no commit, and cut_time() no value yet")
    for table in definition.inputs:
        entry = row.entry(str(table)) or derived.get(str(table))
        if entry is None or entry.version < 0 or entry.state in _EMPTY:
            missing.append(f"its input {table} has no rows yet")
            continue
        if definition.history is not None and entry.state not in _FOLLOWS:
            missing.append(f"its input {table} is {entry.state}")
        if isinstance(entry, DerivedEntry) and entry.at_cut != row.cut:
            missing.append(f"its input {table} is at cut {entry.at_cut}")
        if entry.state != _EQUAL:
            flagged.append(f"its input {table} is {entry.state}: {entry.reason}")
        found[table] = Input.of(entry)
    why, flags = "; ".join(missing), "; ".join(flagged)
    return Inputs(at=found, time=time, missing=why, flagged=flags)
