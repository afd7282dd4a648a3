"""Describes a derived table at a cut, as the ledger has it."""

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

DERIVED_ENTRY: Final = pa.struct(
    [
        ("table", pa.string()),
        ("path", pa.string()),
        ("version", pa.int64()),
        ("state", pa.string()),
        ("reason", pa.string()),
        ("at_cut", pa.int64()),
        ("definition", pa.string()),
        ("rows", pa.int64()),
        ("delta_id", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedEntry:
    """Describes a derived table at a cut; it has its query's rows over the inputs at ``at_cut``."""

    table: str
    path: str
    version: int  # Delta version that holds these rows; -1 if there is none yet
    state: str  # a value of TableState
    reason: str = ""
    at_cut: int = 0
    definition: str = ""  # hash of the definition that made the version
    rows: int = 0
    delta_id: str = ""  # of the Delta table; another one if it was made anew; empty if not known
