"""Holds what a landing has of transactions, counted once: no search for a cut decodes it again.

A summary has one group per transaction and topic, however many events it has. It shrinks as cuts
pass through its landing: memory is in proportion to the transactions that no published cut has.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cdc.apply.rounds.whole_transactions import Span
from cdc.events.transactions import Marker


@dataclass(frozen=True, slots=True)
class Group:
    """Describes the events of one topic that a cut treats alike; tombstones are in no group."""

    topic: str
    txid: int | None  # None: of no transaction, or of an unknown one
    undecodable: bool
    read_lsn: int | None  # of snapshot events, NO_LSN if theirs is not known
    count: int
    first: int  # offsets
    last: int

    def is_torn(self, after: int) -> bool:
        """Return whether an offset parts the transaction's events, so that their number is lost."""
        return self.txid is not None and self.first <= after < self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Summarizes the transactions in a landing beyond some offsets."""

    groups: Sequence[Group] = ()
    ends: Sequence[tuple[int, Marker]] = ()  # END markers with their offsets, in order
    unknown: frozenset[int] = field(default_factory=frozenset)
    """Ids of writer schemas that the registry did not have."""

    def beyond(self, after: Mapping[str, int], markers: str) -> "Summary | None":
        """Return what lies beyond the offsets; None if one of them parts a transaction.

        ``markers`` is the topic of the END markers.
        """
        groups = [group for group in self.groups if group.last > after.get(group.topic, -1)]
        if any(group.is_torn(after.get(group.topic, -1)) for group in groups):
            return None
        ends = [end for end in self.ends if end[0] > after.get(markers, -1)]
        if len(groups) == len(self.groups) and len(ends) == len(self.ends):
            return self
        return replace(self, groups=groups, ends=ends)


def spans(groups: Iterable[Group]) -> dict[str, dict[int, Span]]:
    """Return the events of each transaction, by topic and transaction id."""
    found: dict[str, dict[int, Span]] = {}
    for group in groups:
        if group.txid is not None:
            mine = found.setdefault(group.topic, {})
            old = mine.get(group.txid)
            new = Span(count=group.count, first=group.first, last=group.last)
            mine[group.txid] = new if old is None else _joined(old, new)
    return found


def snapshots(groups: Iterable[Group]) -> dict[str, frozenset[int]]:
    """Return the lsns of the snapshots whose reads are among the events, by topic."""
    lsns: dict[str, frozenset[int]] = {}
    for group in groups:
        if group.read_lsn is not None:
            lsns[group.topic] = lsns.get(group.topic, frozenset()) | {group.read_lsn}
    return lsns


def _joined(one: Span, other: Span) -> Span:
    return Span(
        count=one.count + other.count,
        first=min(one.first, other.first),
        last=max(one.last, other.last),
    )
