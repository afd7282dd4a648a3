"""Says where the last published cut ends, and so where the next one begins."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cdc.apply.table.applied_table import AppliedTable
from cdc.lake.records.ledger import LedgerRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Names the topics that the rounds need to know."""

    prefix: str  # of the connector: every topic begins with it
    markers: str  # of BEGIN and END of transactions
    notes: str  # of structure changes
    ids: Mapping[str, str] = field(default_factory=dict)  # Kafka's own, by topic


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCut:
    """Holds a cut and its end in every topic.

    It is never changed, only replaced, so any thread may read it.
    """

    row: LedgerRow  # cut number 0 before the first
    offsets: Mapping[str, int]  # last offset inside, by topic; -1 for none

    @property
    def lsn(self) -> int:
        """Return the LSN of the last commit inside; 0 before the first."""
        return self.row.lsn or 0


def last_cut(
    row: LedgerRow,
    topics: Topics,
    tables: Mapping[str, AppliedTable],
    before: Mapping[str, int] | None = None,
) -> LastCut:
    """Return where the cut of ``row`` ends.

    ``before`` has the last offset before the cut for the topics of tables that ``row`` lacks;
    a table in neither of them counts as being at its own position.
    """
    offsets = {topics.markers: row.marker_offset, topics.notes: row.notes_offset}
    for topic, table in tables.items():
        entry = row.entry(str(table.schema.table))
        own = (before or {}).get(topic, table.position.offset)
        offsets[topic] = own if entry is None else entry.offset
    return LastCut(row=row, offsets=offsets)
