"""The rows of a table that changes; each has a number, which stays its own. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Change:
    """The rows that go, by number, and those that come; an updated row does both."""

    gone: Numbers
    added: pa.Table

    def __len__(self) -> int:
        return len(self.gone) + int(self.added.num_rows)


Changes = Mapping[str, Change]


@dataclass(slots=True)
class TableRows:
    """All rows that a table has had, in the order of their numbers, and which are there now."""

    rows: pa.Table
    live: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.live = np.ones(self.rows.num_rows, dtype=np.bool_)

    def apply(self, change: Change) -> None:
        """Take rows out, and give the next numbers to the new ones."""
        self.live[change.gone] = False
        self.live = np.append(self.live, np.ones(change.added.num_rows, dtype=np.bool_))
        self.rows = pa.concat_tables([self.rows, change.added])

    def numbers(self) -> Numbers:
        """Return the numbers of the rows that are there."""
        return np.flatnonzero(self.live)

    def at(self, numbers: Numbers) -> pa.Table:
        """Return the rows with these numbers."""
        return self.rows.take(pa.array(numbers))

    def now(self) -> pa.Table:
        """Return the rows that are there."""
        return self.rows.filter(pa.array(self.live))


def set_column(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """Return the rows with other values in one column, of the type that it has."""
    place, kind = rows.schema.get_field_index(name), rows.schema.field(name).type
    return rows.set_column(place, rows.schema.field(name), values.cast(kind))
