"""Computes a cut: the offset up to which each topic is applied so that no transaction is torn.

Events of a topic are in commit order, so the events outside a cut are a suffix of it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cdc.events.transactions import Marker


@dataclass(frozen=True, slots=True)
class Span:
    """Says how many events of one transaction have landed in one topic, and where they are."""

    count: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Says where a cut ends in every topic, and which transaction stopped it.

    ``offsets`` are inclusive; where nothing may be applied, the offset is that of the first event
    minus 1. ``lsn`` and ``committed_at`` are those of the last transaction; None when there is
    none (while the first snapshot runs). ``incomplete`` is the id of a transaction that ended but
    has not landed whole; ``missing`` counts, by topic, its landed and its expected events.
    """

    lsn: int | None
    committed_at: datetime | None
    transactions: int
    offsets: dict[str, int]
    incomplete: int | None = None
    missing: Mapping[str, tuple[int, int]] = field(default_factory=dict)


Landed = Mapping[str, Mapping[int, Span]]
"""By topic and transaction id."""


def find_cut(
    ends: Sequence[Marker],
    landed: Landed,
    last: Mapping[str, int],
    *,
    bound: int | None,
    ignored: Collection[str] = (),
) -> Cut:
    """Return the longest prefix of ``ends`` (in END order) whose transactions have landed whole.

    ``ends`` and ``landed`` hold everything beyond the last *published* cut, even where one table
    is further already. ``last`` has the last landed offset of every topic that is read, also of
    those from which nothing landed: a transaction waits for its events in these topics only.
    The cut does not wait for ``ignored`` topics, since events in quarantine make a count that is
    never reached. ``bound`` stops it at the last END whose lsn is not beyond the bound.
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
    """Return the landed and the expected events of each topic that lacks some."""
    missing = {}
    for topic, expected in end.counts.items():
        have = _count(landed, topic, end.txid)
        if topic in awaited and have < expected:
            missing[topic] = (have, expected)
    return missing


def _count(landed: Landed, topic: str, txid: int) -> int:
    span = landed.get(topic, {}).get(txid)
    return span.count if span else 0


def _cap(spans: Mapping[int, Span], last: int, closed: Collection[int]) -> int:
    return min([last, *(span.first - 1 for txid, span in spans.items() if txid not in closed)])
