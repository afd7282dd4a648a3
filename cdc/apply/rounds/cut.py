"""A cut: up to which offset each topic is applied so that no transaction is torn.

In every topic events stand in commit order, so what lies behind a cut is a suffix.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cdc.events.transactions import Marker


@dataclass(frozen=True, slots=True)
class Span:
    """The landed events of one transaction in one topic."""

    count: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """``offsets`` is inclusive; a topic of which nothing may be applied stands at first - 1.

    ``lsn`` and ``committed_at`` are of the last transaction, None when there is none (while the
    initial snapshot runs). ``incomplete`` is the transaction that ended but has not wholly landed,
    ``missing`` what has landed of it and what it has, by topic, where that is less.
    """

    lsn: int | None
    committed_at: datetime | None
    transactions: int
    offsets: dict[str, int]
    incomplete: int | None = None
    missing: Mapping[str, tuple[int, int]] = field(default_factory=dict)


Landed = Mapping[str, Mapping[int, Span]]


def find_cut(
    ends: Sequence[Marker],
    landed: Landed,
    last: Mapping[str, int],
    *,
    bound: int | None,
    ignored: Collection[str] = (),
) -> Cut:
    """The longest prefix of ``ends`` (in END order) whose transactions have landed whole.

    ``ends`` and ``landed`` hold what lies beyond the last *published* cut, also where one table
    is already further. ``last`` has the last landed offset of every topic that is read, also of
    those of which nothing landed: a transaction waits for its events in these, and in no other.
    ``ignored`` topics are not waited for (events in quarantine make a count that is never
    reached). ``bound`` stops at the last END whose lsn is not beyond it.
    """
    awaited = set(last) - set(ignored)
    closed: set[int] = set()
    reached: Marker | None = None
    incomplete: int | None = None
    missing: dict[str, tuple[int, int]] = {}
    for end in ends:
        if bound is not None and end.lsn > bound:
            break
        if missing := _missing(end, landed, awaited):
            incomplete = end.txid
            break
        closed.add(end.txid)
        reached = end
    return Cut(
        lsn=reached.lsn if reached else None,
        committed_at=reached.committed_at if reached else None,
        transactions=len(closed),
        offsets={topic: _cap(landed.get(topic, {}), last[topic], closed) for topic in last},
        incomplete=incomplete,
        missing=missing,
    )


def _missing(end: Marker, landed: Landed, awaited: Collection[str]) -> dict[str, tuple[int, int]]:
    """What has landed and what is expected, by topic, where more is expected."""
    found = {}
    for topic, expected in end.counts.items():
        have = _count(landed, topic, end.txid)
        if topic in awaited and have < expected:
            found[topic] = (have, expected)
    return found


def _count(landed: Landed, topic: str, txid: int) -> int:
    span = landed.get(topic, {}).get(txid)
    return span.count if span else 0


def _cap(spans: Mapping[int, Span], last: int, closed: Collection[int]) -> int:
    return min([last, *(span.first - 1 for txid, span in spans.items() if txid not in closed)])
