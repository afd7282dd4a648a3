"""The order of a table's events is right for any log in Kafka and any way to read it.

Three parties are modelled, as far as order depends on them:

- Postgres has concurrent transactions, row locks, and a WAL whose records precede their commit.
- The connector sends a snapshot as of the slot's creation, then commits in their order, in Kafka
  transactions of any size, some of which are aborted and sent again.
- The reader may start again at any offset at or before the one that it had reached.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from cdc.events.envelope import ChangeEvent, Op
from cdc.events.fold import fold
from cdc.events.order import in_order

Rows = dict[int, int]
SESSIONS, KEYS = 3, 3
SNAPSHOT = (-1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Holds an event and its place in the source: the commit's number, and the event's in it."""

    event: ChangeEvent
    place: tuple[int, int]


@dataclass(kw_only=True)
class Postgres:
    """A table, its open transactions by session, and the events of what was committed."""

    rows: Rows = field(default_factory=dict)
    open: dict[int, list[ChangeEvent]] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)
    states: list[Rows] = field(default_factory=list)
    """The rows at the snapshot, and after each later commit."""
    records: int = 0
    """The number of WAL records, which is also the newest LSN."""

    def write(self, session: int, key: int, *, delete: bool) -> None:
        """Write or delete a row, unless another transaction has it locked."""
        mine = self.open.setdefault(session, [])
        if any(_touches(changes, key) for other, changes in self.open.items() if other != session):
            return
        self.records += 1
        exists = key in _after(self.rows, mine)
        row = {"id": key, "v": self.records}
        op = Op.DELETE if exists and delete else Op.UPDATE if exists else Op.CREATE
        before, after = (row, None) if op is Op.DELETE else (None, row)
        mine.append(
            ChangeEvent(topic="t", offset=0, op=op, before=before, after=after, lsn=self.records)
        )

    def end(self, session: int, *, commit: bool) -> None:
        """End a session's transaction; a commit after the snapshot is sent."""
        changes = self.open.pop(session, [])
        if not commit or not changes:
            return
        self.rows = _after(self.rows, changes)
        if self.states:  # an earlier commit is part of the snapshot
            number = len(self.states)
            self.sent += [Sent(event=e, place=(number, n)) for n, e in enumerate(changes)]
            self.states.append(self.rows)

    def snapshot(self) -> None:
        """Send the committed rows; open transactions are sent when they commit."""
        self.records += 1
        for key, value in self.rows.items():
            row = {"id": key, "v": value}
            event = ChangeEvent(topic="t", offset=0, op=Op.READ, after=row, lsn=self.records)
            self.sent.append(Sent(event=event, place=SNAPSHOT))
        self.states.append(self.rows)


def _touches(changes: Sequence[ChangeEvent], key: int) -> bool:
    return any(_id(change) == key for change in changes)


def _after(rows: Rows, changes: Sequence[ChangeEvent]) -> Rows:
    """Return the rows after the changes."""
    after = dict(rows)
    for change in changes:
        if change.after is None:
            del after[_id(change)]
        else:
            after[_id(change)] = change.after["v"]
    return after


def _id(event: ChangeEvent) -> int:
    return int((event.image or {})["id"])


def history(random: Random) -> Postgres:
    """Return a source after random steps of its sessions, with a snapshot among them."""
    source = Postgres()
    _act(source, random, random.randrange(12))
    source.snapshot()
    _act(source, random, random.randrange(30))
    return source


def _act(source: Postgres, random: Random, steps: int) -> None:
    for _ in range(steps):
        session, key = random.randrange(SESSIONS), random.randrange(KEYS)
        kind = random.choices(["write", "delete", "commit", "abort"], [3, 1, 2, 1])[0]
        if kind in {"write", "delete"}:
            source.write(session, key, delete=kind == "delete")
        else:
            source.end(session, commit=kind == "commit")


def in_kafka(source: Postgres, random: Random) -> list[Sent]:
    """Return the events with offsets as a reader of committed records may see them.

    Aborted attempts and the markers that end transactions leave gaps between the offsets.
    """
    offset, written, waiting = 0, [], list(source.sent)
    while waiting:
        size = random.randint(1, len(waiting))
        aborted = random.choice([0, 0, 1, 2])  # attempts of any length
        offset += sum(random.randint(1, size) + 1 for _ in range(aborted))
        for sent in waiting[:size]:
            written.append(replace(sent, event=replace(sent.event, offset=offset)))
            offset += 1
        offset += 1
        waiting = waiting[size:]
    return written


def reading(length: int, random: Random) -> list[slice]:
    """Return the parts that a reader gets; none skips an event, and the last reaches the end."""
    parts, reached = [], 0
    for _ in range(random.randrange(6)):
        start = random.randint(0, reached)
        stop = random.randint(start, length)
        parts.append(slice(start, stop))
        reached = max(reached, stop)
    return [*parts, slice(random.randint(0, reached), length)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A source, its topic in Kafka, and the parts in which a reader gets the topic."""

    source: Postgres
    topic: list[Sent]
    parts: list[slice]

    def read(self) -> list[ChangeEvent]:
        """Return all events that the reader gets, repeated ones included."""
        return events(list(chain.from_iterable(self.topic[part] for part in self.parts)))


def make_log(seed: int) -> Log:
    random = Random(seed)
    source = history(random)
    topic = in_kafka(source, random)
    return Log(source=source, topic=topic, parts=reading(len(topic), random))


logs = st.builds(make_log, st.integers(0, 2**32))


def events(sent: Sequence[Sent]) -> list[ChangeEvent]:
    return [one.event for one in sent]


def rows(folded: Sequence[ChangeEvent]) -> Rows:
    """Return the rows that the events give, by id."""
    return {row["id"]: row["v"] for row in fold(folded, ("id",)).values()}


@given(logs)
def test_every_way_to_read_the_log_gives_the_source(log: Log) -> None:
    assert rows(log.read()) == log.source.rows


@given(logs)
def test_every_event_counts_once_and_in_commit_order(log: Log) -> None:
    places = {one.event.offset: one.place for one in log.topic}

    counted = list(in_order(log.read()))

    assert counted == events(log.topic)
    assert [places[e.offset] for e in counted] == sorted(places[e.offset] for e in counted)


@given(logs)
def test_the_last_offset_is_all_that_a_reader_has_to_remember(log: Log) -> None:
    """Apply each part with only the last offset remembered; compare the rows at each commit."""
    states, topic = log.source.states, log.topic
    rows_at = {end: states[topic[end - 1].place[0]] for end in _ends(topic)}
    applied: list[ChangeEvent] = []
    reached, position = 0, -1
    for part in log.parts:
        applied += in_order(events(log.topic[part]), after=position)
        reached = max(reached, part.stop)
        position = applied[-1].offset if applied else -1

        assert len(applied) == reached
        assert rows(applied) == rows_at.get(reached, rows(applied))


def _ends(topic: Sequence[Sent]) -> Iterator[int]:
    """Yield the number of events up to the end of each transaction."""
    for number, (one, following) in enumerate(pairwise(topic), start=1):
        if one.place != SNAPSHOT and one.place[0] != following.place[0]:
            yield number
    if topic and topic[-1].place != SNAPSHOT:
        yield len(topic)


def test_ordering_by_lsn_gives_wrong_rows() -> None:
    """A transaction open at the snapshot has lower LSNs, so it would lose to the snapshot."""
    sources = [make_log(seed).source for seed in range(100)]

    by_lsn = [sorted(events(s.sent), key=lambda event: event.lsn or 0) for s in sources]
    wrong = [
        source
        for source, ordered in zip(sources, by_lsn, strict=True)
        if rows([replace(e, offset=n) for n, e in enumerate(ordered)]) != source.rows
    ]

    assert wrong


def test_comparing_only_with_the_row_s_own_offset_brings_back_deleted_rows() -> None:
    """A deleted row has no guard, so events that are read again re-create it for a while."""
    assert any(_brought_back(make_log(seed)) for seed in range(100))


def _brought_back(log: Log) -> bool:
    """Return whether a reader that guards each row by its own offset re-creates a deleted row."""
    held: dict[int, int] = {}
    ended = set()
    for part in log.parts:
        for event in events(log.topic[part]):
            if event.offset <= held.get(_id(event), -1):
                continue
            held[_id(event)] = event.offset
            if event.op is Op.DELETE:
                ended.add((_id(event), event.offset))
                del held[_id(event)]
        if any(held.get(key, offset) < offset for key, offset in ended):
            return True
    return False
