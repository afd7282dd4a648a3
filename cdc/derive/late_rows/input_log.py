"""Define what a step on late rows reads of the log."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from cdc.derive.late.rule import LateRule
from cdc.derive.late.watermark import Transaction
from cdc.derive.log.topic_rows import Recent
from cdc.lake.records.ledger import LedgerRow

Place = Mapping[str, Any]
"""How far somebody has read the log, as a mark has it; empty: not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSlice:
    """Holds the transactions between two places; they can be read once."""

    begun: Place  # behind which it begins: later than asked where older events are given up
    place: Place  # up to which it reaches
    columns: pa.Schema  # of the values of a row
    transactions: Iterator[Transaction]


class InputLog(Protocol):
    """Reads the log of the captured tables."""

    def read(
        self, rule: LateRule, after: Place, row: LedgerRow, recent: Recent | None = None
    ) -> LogSlice:
        """Return the transactions of all tables up to a cut, with the events of the rule's table.

        ``recent`` is what of the log is in memory, if anything.
        Raises TABLE_STOPPED where the log cannot say what they are.
        """
