"""Holds an event of the log, and the change that decoding makes of it, as plain values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

Key = tuple[Any, ...]
Values = list[Any]
"""One row's values in the order of the table's columns, as cdc/apply/changes/conversion.py has."""

APPLIED: Final = frozenset({"c", "r", "u", "d"})
FULL: Final = frozenset({"c", "r", "d"})
"""Operations that make all older events of their key irrelevant."""


class LogEvent(NamedTuple):
    """Holds one row of the log that is not a tombstone."""

    offset: int
    value: bytes
    value_schema_id: int | None
    key: bytes | None = None
    key_schema_id: int | None = None
    moved: bool = False  # it is the second half of a changed key


@dataclass(frozen=True, slots=True)
class Change:
    """Describes one typed change of one table, or says why it is refused.

    ``values`` are those of the row before of a delete (only the key, except in MULTISET mode), and
    of the row after of other events; None where they could not be read. ``keep`` has the numbers
    of the columns that are only marked as unchanged. ``key`` is None unless every part of it is
    known, also of a refused change.
    """

    offset: int
    op: str | None
    values: Sequence[Any]
    key: Key | None = None
    keep: tuple[int, ...] = ()
    reason: str | None = None

    @property
    def applies(self) -> bool:
        """Return whether it changes its row."""
        return self.reason is None and self.op in APPLIED
