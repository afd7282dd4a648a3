"""A cut splits no transaction, skips none, and never moves back."""

from dataclasses import dataclass
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from cdc.apply.rounds.whole_transactions import Cut, Span, find_cut
from cdc.events.transactions import END, Marker

TOPICS = ("a", "b", "c")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Transactions in commit order, as the connector writes them to the topics.

    ``topics`` has the txid at each offset of a topic, or None for a row of the snapshot.
    """

    ends: tuple[Marker, ...]
    topics: dict[str, tuple[int | None, ...]]

    def landed(self, lengths: dict[str, int]) -> dict[str, dict[int, Span]]:
        """Return the spans by txid in the first ``lengths`` events of each topic."""
        spans_of: dict[str, dict[int, Span]] = {}
        for topic, length in lengths.items():
            for offset, txid in enumerate(self.topics[topic][:length]):
                if txid is not None:
                    spans = spans_of.setdefault(topic, {})
                    old = spans.get(txid, Span(0, offset, offset))
                    spans[txid] = Span(old.count + 1, old.first, offset)
        return spans_of

    def cut(self, ends: int, lengths: dict[str, int], bound: int | None) -> Cut:
        last = {topic: length - 1 for topic, length in lengths.items()}
        return find_cut(self.ends[:ends], self.landed(lengths), last, bound=bound)


def stream(seed: int, transactions: int) -> Stream:
    """Return a random stream of so many transactions."""
    random = Random(seed)
    topics: dict[str, list[int | None]] = {topic: [None] * random.randrange(3) for topic in TOPICS}
    ends = []
    for number in range(transactions):
        txid = 1000 - number  # older transactions may commit later
        counts = {topic: random.choice([0, 0, 1, 3]) for topic in TOPICS}
        for topic, count in counts.items():
            topics[topic] += [txid] * count
        sent = {topic: count for topic, count in counts.items() if count}
        ends.append(Marker(txid=txid, lsn=10 * number + 10, status=END, counts=sent))
    return Stream(ends=tuple(ends), topics={t: tuple(txids) for t, txids in topics.items()})


streams = st.builds(stream, st.integers(0, 2**32), st.integers(0, 12))


@st.composite
def landings(draw: st.DrawFn, sent: Stream) -> tuple[int, dict[str, int]]:
    """Draw how many END markers, and how many events of each topic, have landed."""
    ends = draw(st.integers(0, len(sent.ends)))
    return ends, {t: draw(st.integers(0, len(events))) for t, events in sent.topics.items()}


@given(streams, st.none() | st.integers(0, 130), st.data())
def test_a_cut_has_exactly_the_transactions_up_to_its_lsn(
    sent: Stream, bound: int | None, data: st.DataObject
) -> None:
    ends, lengths = data.draw(landings(sent))

    cut = sent.cut(ends, lengths, bound)

    inside = {end.txid for end in sent.ends if end.lsn <= (cut.lsn or 0)}
    assert len(inside) == cut.transactions
    for topic, events in sent.topics.items():
        assert cut.offsets[topic] < lengths[topic]
        applied = events[: cut.offsets[topic] + 1]
        rest = events[cut.offsets[topic] + 1 :]
        assert set(applied) <= inside | {None}
        assert not inside & set(rest)
    assert bound is None or (cut.lsn or 0) <= bound


@given(streams, st.data())
def test_a_cut_stops_only_at_an_incomplete_transaction(sent: Stream, data: st.DataObject) -> None:
    ends, lengths = data.draw(landings(sent))

    cut = sent.cut(ends, lengths, None)

    assert (cut.incomplete is None) == (cut.transactions == ends)
    if cut.incomplete is not None:
        stopped = sent.ends[cut.transactions]
        assert stopped.txid == cut.incomplete
        assert any(
            sent.topics[topic][: lengths[topic]].count(stopped.txid) < count
            for topic, count in stopped.counts.items()
        )


@given(streams, st.data())
def test_a_later_cut_is_never_behind_an_earlier_one(sent: Stream, data: st.DataObject) -> None:
    ends, lengths = data.draw(landings(sent))
    more_ends = data.draw(st.integers(ends, len(sent.ends)))
    more = {t: data.draw(st.integers(n, len(sent.topics[t]))) for t, n in lengths.items()}

    before, after = sent.cut(ends, lengths, None), sent.cut(more_ends, more, None)

    assert (after.lsn or 0) >= (before.lsn or 0)
    assert all(after.offsets[topic] >= offset for topic, offset in before.offsets.items())


@given(streams)
def test_a_cut_has_every_transaction_once_all_have_landed(sent: Stream) -> None:
    lengths = {topic: len(events) for topic, events in sent.topics.items()}

    cut = sent.cut(len(sent.ends), lengths, None)

    assert cut.transactions == len(sent.ends)
    assert cut.offsets == {topic: length - 1 for topic, length in lengths.items()}
