"""A cut tears no transaction, misses none, and only moves on."""

from dataclasses import dataclass
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from cdc.apply.rounds.whole_transactions import Cut, Span, find_cut
from cdc.events.transactions import END, Marker

TOPICS = ("a", "b", "c")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Transactions in commit order: by topic the txid of each offset, None for a snapshot's row."""

    ends: tuple[Marker, ...]
    topics: dict[str, tuple[int | None, ...]]

    def landed(self, lengths: dict[str, int]) -> dict[str, dict[int, Span]]:
        found: dict[str, dict[int, Span]] = {}
        for topic, length in lengths.items():
            for offset, txid in enumerate(self.topics[topic][:length]):
                if txid is not None:
                    spans = found.setdefault(topic, {})
                    old = spans.get(txid, Span(0, offset, offset))
                    spans[txid] = Span(old.count + 1, old.first, offset)
        return found

    def cut(self, ends: int, lengths: dict[str, int], bound: int | None) -> Cut:
        last = {topic: length - 1 for topic, length in lengths.items()}
        return find_cut(self.ends[:ends], self.landed(lengths), last, bound=bound)


def stream(seed: int, transactions: int) -> Stream:
    random = Random(seed)
    topics: dict[str, list[int | None]] = {topic: [None] * random.randrange(3) for topic in TOPICS}
    ends = []
    for number in range(transactions):
        txid = 1000 - number  # older transactions may commit later
        counts = {topic: random.choice([0, 0, 1, 3]) for topic in TOPICS}
        for topic, count in counts.items():
            topics[topic] += [txid] * count
        named = {topic: count for topic, count in counts.items() if count}
        ends.append(Marker(txid=txid, lsn=10 * number + 10, status=END, counts=named))
    return Stream(ends=tuple(ends), topics={t: tuple(found) for t, found in topics.items()})


streams = st.builds(stream, st.integers(0, 2**32), st.integers(0, 12))


@st.composite
def landings(draw: st.DrawFn, found: Stream) -> tuple[int, dict[str, int]]:
    ends = draw(st.integers(0, len(found.ends)))
    return ends, {t: draw(st.integers(0, len(events))) for t, events in found.topics.items()}


@given(streams, st.none() | st.integers(0, 130), st.data())
def test_exactly_the_transactions_up_to_the_cut_are_in_it(
    found: Stream, bound: int | None, data: st.DataObject
) -> None:
    ends, lengths = data.draw(landings(found))

    cut = found.cut(ends, lengths, bound)

    inside = {end.txid for end in found.ends if end.lsn <= (cut.lsn or 0)}
    assert len(inside) == cut.transactions
    for topic, events in found.topics.items():
        assert cut.offsets[topic] < lengths[topic]
        applied = events[: cut.offsets[topic] + 1]
        rest = events[cut.offsets[topic] + 1 :]
        assert set(applied) <= inside | {None}
        assert not inside & set(rest)
    assert bound is None or (cut.lsn or 0) <= bound


@given(streams, st.data())
def test_the_cut_stops_only_where_it_must(found: Stream, data: st.DataObject) -> None:
    ends, lengths = data.draw(landings(found))

    cut = found.cut(ends, lengths, None)

    assert (cut.incomplete is None) == (cut.transactions == ends)
    if cut.incomplete is not None:
        stopped = found.ends[cut.transactions]
        assert stopped.txid == cut.incomplete
        assert any(
            found.topics[topic][: lengths[topic]].count(stopped.txid) < count
            for topic, count in stopped.counts.items()
        )


@given(streams, st.data())
def test_the_cut_only_moves_on(found: Stream, data: st.DataObject) -> None:
    ends, lengths = data.draw(landings(found))
    more_ends = data.draw(st.integers(ends, len(found.ends)))
    more = {t: data.draw(st.integers(n, len(found.topics[t]))) for t, n in lengths.items()}

    before, after = found.cut(ends, lengths, None), found.cut(more_ends, more, None)

    assert (after.lsn or 0) >= (before.lsn or 0)
    assert all(after.offsets[topic] >= offset for topic, offset in before.offsets.items())


@given(streams)
def test_when_all_has_landed_all_is_in_the_cut(found: Stream) -> None:
    lengths = {topic: len(events) for topic, events in found.topics.items()}

    cut = found.cut(len(found.ends), lengths, None)

    assert cut.transactions == len(found.ends)
    assert cut.offsets == {topic: length - 1 for topic, length in lengths.items()}
