"""Landings are summarised once, whatever the searches for a cut take of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from random import Random
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.apply.rounds.log_slice import Slice, in_memory, merged, rows_beyond
from cdc.apply.rounds.summaries import Summaries
from cdc.apply.rounds.summary import Group, Summary
from cdc.apply.rounds.whole_transactions import Span, find_cut
from cdc.events.avro import encode
from cdc.events.transactions import END
from cdc.events.values.lsn import NO_LSN
from cdc.land.arrow_rows import arrow_landing, arrow_rows
from cdc.land.landing import Landing, beyond, last_offsets, within_budget
from cdc.land.log_rows import LogRows
from tests.events.recorded import recording
from tests.unit.land.test_arrow_rows import SOURCE

NOW = datetime(2026, 1, 2, tzinfo=UTC)
PREFIX, MARKERS = "wal2lake", "wal2lake.transaction"
TOPICS = (f"{PREFIX}.public.orders", f"{PREFIX}.public.customers")
BEGIN = dict.fromkeys([*TOPICS, MARKERS], -1)
EVENT, MARKER = 125, 10
"""Ids of recorded writer schemas."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Describes one record: an event of a transaction, its END, or a row of the snapshot."""

    topic: str
    offset: int
    txid: int | None = None
    counts: tuple[tuple[str, int], ...] = ()  # of an END
    raw: bytes | None = None  # instead of all that

    @property
    def message(self) -> bytes:
        return self.raw if self.raw is not None else _encoded(self.topic, self.txid, self.counts)


@cache
def _encoded(topic: str, txid: int | None, counts: tuple[tuple[str, int], ...]) -> bytes:
    texts = recording("tables").schemas
    if topic == MARKERS:
        listed = [
            {"data_collection": name.removeprefix(f"{PREFIX}."), "event_count": count}
            for name, count in counts
        ]
        end = {"status": END, "id": f"{txid}:{txid}", "event_count": len(listed), "ts_ms": 1}
        return encode(texts[MARKER], MARKER, {**end, "data_collections": listed})
    source = {"version": "", "connector": "", "name": "", "ts_ms": 1, "db": ""}
    event: dict[str, Any] = {
        "op": "c" if txid else "r",
        "after": {"id": 1, "customer_id": 2, "note": "é"},
        "source": {**source, "schema": "public", "table": "orders", "lsn": 77},
    }
    block = {"id": f"{txid}:9", "total_order": 1, "data_collection_order": 1}
    return encode(texts[EVENT], EVENT, {**event, "transaction": block if txid else None})


def landing(number: int, records: Iterable[Sent]) -> Landing:
    rows = [
        {"topic": r.topic, "partition": 0, "offset": r.offset, "value": r.message} for r in records
    ]
    return arrow_landing(arrow_rows(pa.Table.from_pylist(rows, schema=SOURCE), number, NOW))


def summaries() -> Summaries:
    return Summaries(_schemas, markers=MARKERS, prefix=PREFIX)


def _schemas(ids: Iterable[int]) -> dict[int, str]:
    texts = recording("tables").schemas
    return {number: texts[number] for number in ids if number in texts}


def not_asked() -> NoReturn:
    raise AssertionError("Spark was asked")


def looked_at(
    found: Summaries, landings: Sequence[Landing], after: Mapping[str, int] = BEGIN
) -> Slice:
    """Return the slice of these landings, as a round takes it."""
    ends = last_offsets(landings)
    return merged(
        found.of(landings, after, not_asked),
        lambda: LogRows(not_asked, in_memory(landings, after)),
        topics={topic for one in beyond(landings, after) for topic in one.topics},
        last={topic: max(after[topic], ends.get(topic, -1)) for topic in TOPICS},
        marker_topic=MARKERS,
    )


def stream(random: Random, transactions: int) -> list[Sent]:
    """Return random transactions as the connector writes them, behind rows of a snapshot."""
    places = dict.fromkeys(BEGIN, 0)

    def sent(topic: str, **what: Any) -> Sent:  # noqa: ANN401 - fields of a record
        places[topic] += random.choice([1, 1, 2])  # Kafka's own markers leave gaps
        return Sent(topic, places[topic] - 1, **what)

    records = [sent(random.choice(TOPICS)) for _ in range(random.randrange(4))]
    for txid in range(100, 100 + transactions):
        counts = {topic: random.randrange(3) for topic in TOPICS}
        for topic, count in counts.items():
            records += [sent(topic, txid=txid) for _ in range(count)]
        if random.random() < 0.1:
            records.append(sent(random.choice(TOPICS), raw=b"?"))
        some = tuple((topic, count) for topic, count in counts.items() if count)
        records.append(sent(MARKERS, txid=txid, counts=some))
    return records


def landed(random: Random, records: Sequence[Sent]) -> list[Landing]:
    """Return the records in landings, each with a share of every topic."""
    queues = {topic: [r for r in records if r.topic == topic] for topic in BEGIN}
    landings = list[Landing]()
    while any(queues.values()):
        part = []
        for queue in queues.values():
            count = random.randint(0, len(queue))
            part += queue[:count]
            del queue[:count]
        if part:
            landings.append(landing(len(landings) + 1, part))
    return landings


def expected(records: Iterable[Sent], after: Mapping[str, int]) -> Summary:
    """Return the groups beyond the offsets, counted plainly."""
    groups: dict[tuple[str, int | None, bool], list[int]] = {}
    for record in records:
        if record.topic != MARKERS and record.offset > after[record.topic]:
            key = record.topic, record.txid, record.raw is not None
            groups.setdefault(key, []).append(record.offset)
    return Summary(
        groups=[
            Group(topic, txid, torn, None if txid or torn else 77, len(at), min(at), max(at))
            for (topic, txid, torn), at in groups.items()
        ]
    )


@given(st.integers(0, 2**32), st.integers(0, 8))
def test_every_slice_is_that_of_its_events_and_each_is_decoded_once(
    seed: int, transactions: int
) -> None:
    random = Random(seed)
    records = stream(random, transactions)
    waiting, found, after = landed(random, records), summaries(), dict(BEGIN)
    total = sum(one.count for one in waiting)
    for _ in range(12):
        taken = waiting[: random.randint(1, max(1, len(waiting)))]
        if not taken:
            break
        part = looked_at(found, taken, after)
        ends = last_offsets(taken)
        inside = [r for r in records if r.offset <= ends.get(r.topic, -1)]
        plain = merged(
            [expected(inside, after)],
            not_asked,
            topics=set(TOPICS),
            last=part.last,
            marker_topic=MARKERS,
        )
        assert (part.spans, part.undecodable) == (plain.spans, plain.undecodable)
        assert part.snapshots == plain.snapshots
        txids = [r.txid for r in inside if r.topic == MARKERS and r.offset > after[MARKERS]]
        assert [end.txid for end in part.ends] == txids
        assert part.rows.events is not None
        cut = find_cut(part.ends, part.spans, part.last, bound=None, ignored=part.undecodable)
        after |= {topic: max(after[topic], end) for topic, end in cut.offsets.items()}
        if cut.lsn is not None:
            after[MARKERS] = part.end_offsets[cut.lsn]
        waiting = [one for one in waiting if beyond([one], after)]
    torn = sum(one.count for one in waiting)
    assert found.decoded <= total + (torn if part_is_torn(records) else 0)


def part_is_torn(records: Sequence[Sent]) -> bool:
    """Return whether a cut may have parted a transaction: one in a topic that is not waited for."""
    return any(record.raw is not None for record in records)


@pytest.mark.parametrize("ends", [True, False])
def test_a_long_transaction_is_decoded_once_however_often_it_is_looked_at(ends: bool) -> None:
    found, waiting = summaries(), list[Landing]()
    for number in range(40):
        some = [Sent(TOPICS[0], number * 5 + place, txid=7) for place in range(5)]
        waiting.append(landing(number + 1, some))
        budget = 5
        while len(taken := within_budget(waiting, budget)) < len(waiting):
            assert looked_at(found, taken).ends == []
            budget *= 2
        part = looked_at(found, waiting)
        assert part.spans == {
            TOPICS[0]: {7: Span(count=5 * number + 5, first=0, last=5 * number + 4)}
        }
    if ends:
        waiting.append(landing(41, [Sent(MARKERS, 0, txid=7, counts=((TOPICS[0], 200),))]))
        part = looked_at(found, waiting)
        assert find_cut(part.ends, part.spans, part.last, bound=None).offsets[TOPICS[0]] == 199

    assert found.decoded == sum(one.count for one in waiting)


def test_a_cut_inside_a_transaction_has_the_landing_counted_again() -> None:
    found = summaries()
    one = landing(1, [Sent(TOPICS[0], offset, txid=7) for offset in (0, 2, 3)])
    looked_at(found, [one])

    part = looked_at(found, [one], {**BEGIN, TOPICS[0]: 2})

    assert part.spans == {TOPICS[0]: {7: Span(count=1, first=3, last=3)}}
    assert part.rows.events is not None
    assert part.rows.events["offset"].to_pylist() == [3]
    assert found.decoded == 3 + 1


def test_a_landing_is_decoded_again_once_the_registry_has_its_schema() -> None:
    texts = dict[int, str]()
    found = Summaries(
        lambda ids: {i: texts[i] for i in ids if i in texts}, markers=MARKERS, prefix=PREFIX
    )
    one = landing(1, [Sent(TOPICS[0], 0, txid=7)])

    assert looked_at(found, [one]).undecodable == {TOPICS[0]}
    texts |= _schemas([EVENT])
    assert looked_at(found, [one]).undecodable == frozenset()
    assert looked_at(found, [one]).spans == {TOPICS[0]: {7: Span(1, 0, 0)}}
    assert found.decoded == 2


def test_topics_that_wait_or_are_not_followed_do_not_count() -> None:
    found = summaries()
    stranger = Sent(f"{PREFIX}.public.gone", 0, txid=7)
    end = Sent(MARKERS, 0, txid=7)
    one = landing(1, [Sent(TOPICS[0], 0, txid=7), Sent(TOPICS[1], 0, txid=7), end, stranger])
    [counted] = found.of([one], BEGIN, not_asked)

    assert {group.topic for group in counted.groups} == set(TOPICS)
    part = merged([counted], not_asked, topics={TOPICS[0]}, last={}, marker_topic=MARKERS)
    assert part.spans.keys() == {TOPICS[0]}
    assert (len(counted.ends), part.ends) == (1, [])


def test_summaries_are_forgotten_with_their_landings() -> None:
    found = summaries()
    some = [landing(n, [Sent(TOPICS[0], n, txid=n)]) for n in (1, 2)]
    found.of(some, BEGIN, not_asked)

    found.forget(1)
    found.of(some, BEGIN, not_asked)

    assert found.decoded == 3


def test_a_summary_shrinks_to_what_lies_beyond_a_cut() -> None:
    groups = [
        Group("t", 7, undecodable=False, read_lsn=None, count=2, first=0, last=1),
        Group("t", None, undecodable=False, read_lsn=NO_LSN, count=9, first=0, last=9),
        Group("u", 8, undecodable=False, read_lsn=None, count=2, first=4, last=6),
    ]
    whole = Summary(groups=groups)

    assert whole.beyond({"t": -1, "u": 3}, "m") is whole
    left = whole.beyond({"t": 1, "u": 3}, "m")
    assert left is not None
    assert left.groups == groups[1:]
    assert whole.beyond({"t": 0, "u": 3}, "m") is None
    assert whole.beyond({"t": 1, "u": 5}, "m") is None
    assert whole.beyond({"t": 9, "u": 6}, "m") == Summary(groups=[], ends=[])


def test_rows_beyond_are_those_of_followed_topics_behind_their_offsets() -> None:
    rows = pa.table({"topic": ["a", "a", "b", "c"], "offset": [1, 2, 3, 4]})

    assert rows_beyond(rows, {"a": 1, "b": 3}).to_pylist() == [{"topic": "a", "offset": 2}]


def test_rows_are_in_memory_only_if_all_landings_are() -> None:
    one = landing(1, [Sent(TOPICS[0], 0)])
    bare = Landing(number=2, topics=one.topics)

    assert in_memory([one, bare], BEGIN) is None
    assert in_memory([], BEGIN) is None
    assert in_memory([one], BEGIN) is not None
