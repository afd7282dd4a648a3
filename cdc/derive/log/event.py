"""Define what a slice of the log gives of one captured table. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cdc.apply.local.change import Change, Key

Row = Sequence[Any]
"""Values of all columns of the table, in order, as cdc/apply/changes/conversion.py has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Says how far somebody has read a table's events: everything up to here."""

    epoch: int
    offset: int  # of the table's topic; -1 for none
    marker_offset: int  # of the topic of transaction markers
    reading: int  # number of the last reading; 0 for none


@dataclass(frozen=True, slots=True)
class Transaction:
    """Describes a transaction of the source, from its END."""

    txid: int
    lsn: int  # end of its commit; rises in the order of commits, within an epoch
    committed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEvent:
    """Describes one event of the table.

    ``op`` is the connector's letter: ``r`` a row of a snapshot, ``c``, ``u``, ``d``, and ``t`` for
    a TRUNCATE. ``after`` is the whole row, with the values that did not change; None for ``d`` and
    ``t``. ``before`` is the row before an update or a delete, where the events or the table say
    what it was; always for a table without a key. A changed key is ``d`` and then ``c``, of one
    transaction. With a ``reason`` the event was refused, and says nothing of its row.
    """

    offset: int
    op: str | None
    key: Key | None  # None for ``t``, and in a table without a key
    after: Row | None
    before: Row | None
    transaction: Transaction | None
    """None for ``r``, and where the log no longer has its END."""
    read_lsn: int | None = None  # of ``r``: the snapshot's
    reason: str | None = None

    @property
    def lsn(self) -> int | None:
        """Return the earliest LSN of the source that the event names; None if it names none."""
        return self.read_lsn if self.transaction is None else self.transaction.lsn


@dataclass(frozen=True, slots=True)
class Decoded:
    """Holds a change and what its record says of its transaction; its row may still lack values."""

    change: Change
    transaction: Transaction | None
    read_lsn: int | None
