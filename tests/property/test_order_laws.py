"""The order of a table holds for every log that Kafka may hold and every way to read it.

Postgres is modelled as far as order goes: sessions whose transactions lie open side by side, row
locks, a WAL whose records are older than their commit; the connector as far as it may: a snapshot
of the slot's moment, commits in their order, Kafka transactions of any size of which some are
aborted and sent again; the reader as one who may begin again anywhere before where it was.
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
    """An event, and its place in the source: number of its commit, number in it."""

    event: ChangeEvent
    place: tuple[int, int]


@dataclass(kw_only=True)
class Postgres:
    rows: Rows = field(default_factory=dict)
    open: dict[int, list[ChangeEvent]] = field(default_factory=dict)
    sent: list[Sent] = field(default_factory=list)
    states: list[Rows] = field(default_factory=list)
    """Rows after each commit; the first are those of the snapshot."""
    records: int = 0  # in the WAL

    def write(self, session: int, key: int, *, delete: bool) -> None:
        """Change a row that no other transaction holds."""
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
        changes = self.open.pop(session, [])
        if not commit or not changes:
            return
        self.rows = _after(self.rows, changes)
        if self.states:  # nothing is sent of what the snapshot holds
            number = len(self.states)
            self.sent += [Sent(event=e, place=(number, n)) for n, e in enumerate(changes)]
            self.states.append(self.rows)

    def snapshot(self) -> None:
        """What is committed; transactions that are open are sent when they commit."""
        self.records += 1
        for key, value in self.rows.items():
            row = {"id": key, "v": value}
            event = ChangeEvent(topic="t", offset=0, op=Op.READ, after=row, lsn=self.records)
            self.sent.append(Sent(event=event, place=SNAPSHOT))
        self.states.append(self.rows)


def _touches(changes: Sequence[ChangeEvent], key: int) -> bool:
    return any(_id(change) == key for change in changes)


def _after(rows: Rows, changes: Sequence[ChangeEvent]) -> Rows:
    found = dict(rows)
    for change in changes:
        if change.after is None:
            del found[_id(change)]
        else:
            found[_id(change)] = change.after["v"]
    return found


def _id(event: ChangeEvent) -> int:
    return int((event.image or {})["id"])


def history(random: Random) -> Postgres:
    """Any interleaving of sessions, with the snapshot anywhere in between."""
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
    """What a reader of committed records may see: a hole for each abort and each marker."""
    offset, found, waiting = 0, [], list(source.sent)
    while waiting:
        size = random.randint(1, len(waiting))
        aborted = random.choice([0, 0, 1, 2])  # attempts of any length; their records stay as holes
        offset += sum(random.randint(1, size) + 1 for _ in range(aborted))
        for sent in waiting[:size]:
            found.append(replace(sent, event=replace(sent.event, offset=offset)))
            offset += 1
        offset += 1
        waiting = waiting[size:]
    return found


def reading(length: int, random: Random) -> list[slice]:
    """Parts as a reader gets them, the last up to the end; none begins beyond what was read."""
    found, reached = [], 0
    for _ in range(random.randrange(6)):
        start = random.randint(0, reached)
        stop = random.randint(start, length)
        found.append(slice(start, stop))
        reached = max(reached, stop)
    return [*found, slice(random.randint(0, reached), length)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    source: Postgres
    topic: list[Sent]
    parts: list[slice]

    def given(self) -> list[ChangeEvent]:
        return events(list(chain.from_iterable(self.topic[part] for part in self.parts)))


def log(seed: int) -> Log:
    random = Random(seed)
    source = history(random)
    topic = in_kafka(source, random)
    return Log(source=source, topic=topic, parts=reading(len(topic), random))


logs = st.builds(log, st.integers(0, 2**32))


def events(sent: Sequence[Sent]) -> list[ChangeEvent]:
    return [one.event for one in sent]


def rows(found: Sequence[ChangeEvent]) -> Rows:
    return {row["id"]: row["v"] for row in fold(found, ("id",)).values()}


@given(logs)
def test_every_reading_gives_the_source(found: Log) -> None:
    assert rows(found.given()) == found.source.rows


@given(logs)
def test_every_event_counts_once_and_no_key_moves_back(found: Log) -> None:
    places = {one.event.offset: one.place for one in found.topic}

    counted = list(in_order(found.given()))

    assert counted == events(found.topic)
    assert [places[e.offset] for e in counted] == sorted(places[e.offset] for e in counted)


@given(logs)
def test_one_number_is_memory_enough(found: Log) -> None:
    """Applied part by part, with nothing kept but the place reached; at a commit: its state."""
    ends = {end: found.source.states[found.topic[end - 1].place[0]] for end in _ends(found.topic)}
    applied: list[ChangeEvent] = []
    reached, position = 0, -1
    for part in found.parts:
        applied += in_order(events(found.topic[part]), after=position)
        reached = max(reached, part.stop)
        position = applied[-1].offset if applied else -1

        assert len(applied) == reached
        assert rows(applied) == ends.get(reached, rows(applied))


def _ends(topic: Sequence[Sent]) -> Iterator[int]:
    """How many events there are up to the end of each transaction."""
    for number, (one, following) in enumerate(pairwise(topic), start=1):
        if one.place != SNAPSHOT and one.place[0] != following.place[0]:
            yield number
    if topic and topic[-1].place != SNAPSHOT:
        yield len(topic)


def test_the_order_of_lsns_fails_these_laws() -> None:
    """What was open at the snapshot loses to the snapshot's row."""
    sources = [log(seed).source for seed in range(100)]

    by_lsn = [sorted(events(s.sent), key=lambda event: event.lsn or 0) for s in sources]
    wrong = [
        source
        for source, found in zip(sources, by_lsn, strict=True)
        if rows([replace(e, offset=n) for n, e in enumerate(found)]) != source.rows
    ]

    assert wrong


def test_a_guard_of_each_row_alone_brings_back_what_is_gone() -> None:
    """A row that is deleted has no guard: read again, its events make it anew for a while."""
    assert any(_brought_back(log(seed)) for seed in range(100))


def _brought_back(found: Log) -> bool:
    held: dict[int, int] = {}
    ended = set()
    for part in found.parts:
        for event in events(found.topic[part]):
            if event.offset <= held.get(_id(event), -1):
                continue
            held[_id(event)] = event.offset
            if event.op is Op.DELETE:
                ended.add((_id(event), event.offset))
                del held[_id(event)]
        if any(held.get(key, offset) < offset for key, offset in ended):
            return True
    return False
