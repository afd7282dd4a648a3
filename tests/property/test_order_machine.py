"""Two tables are right while transactions land, are cut and are applied, with crashes between.

The apply side is a model, in plain Python, of what ``cdc/apply`` does with DataFrames. It reduces
a slice of events to one row per key and writes the rows in one commit with the position; a value
that no event of the slice has is taken from the lake's row. The cuts come from the real
``find_cut``. After every step each table is the fold of the events that it has applied. At every
published cut both tables equal the source after one and the same commit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cdc.apply.rounds.whole_transactions import Cut, Span, find_cut
from cdc.events.envelope import ChangeEvent, Op
from cdc.events.fold import fold
from cdc.events.order import in_order
from cdc.events.transactions import END, Marker
from tests.events.recorded import unchanged_by
from tests.events.source import Row, Source, act

PLACEHOLDER = "no-value-of-the-source"
UNCHANGED = unchanged_by(PLACEHOLDER)
KEY = ("id",)
TABLES = ("a", "b")
Rows = dict[int, Row]
seeds = st.integers(0, 2**32)


@dataclass(frozen=True, slots=True)
class LakeValue:
    """Stands for the value in the lake's row of the key before the slice is applied."""

    key: int
    column: str


@dataclass(kw_only=True)
class Reduction:
    """Holds the effect of a slice: whether it empties the table, and the last row of each key."""

    emptied: bool = False
    latest: dict[int, Row | None] = field(default_factory=dict)

    def add(self, event: ChangeEvent, gone: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add an event; return the row that it deletes, whose values a changed key may need.

        ``gone`` is the row that the previous event deleted.
        """
        if event.op is Op.TRUNCATE:
            self.emptied = True
            self.latest.clear()
            return {}
        image = event.image or {}
        key = image["id"]
        before = self._row(key, image)
        if event.op is Op.DELETE:
            self.latest[key] = None
            return before
        old = before if event.op is Op.UPDATE else gone if event.moved else {}
        self.latest[key] = {n: old[n] if UNCHANGED(v) else v for n, v in image.items()}
        return {}

    def _row(self, key: int, columns: Iterable[str]) -> Mapping[str, Any]:
        """Return the key's row so far."""
        if key in self.latest:
            return self.latest[key] or {}
        return {} if self.emptied else {name: LakeValue(key, name) for name in columns}


def reduced(events: Iterable[ChangeEvent]) -> Reduction:
    reduction = Reduction()
    gone: Mapping[str, Any] = {}
    for event in events:
        gone = reduction.add(event, gone)
    return reduction


@dataclass(kw_only=True)
class Table:
    """A table of the lake, and the offset up to which events are in it."""

    rows: Rows = field(default_factory=dict)
    position: int = -1

    def apply(self, events: Sequence[ChangeEvent], upto: int) -> None:
        """Commit the rows together with their position."""
        reduction = reduced(in_order(events, after=self.position))
        old = {} if reduction.emptied else self.rows
        untouched = {key: row for key, row in old.items() if key not in reduction.latest}
        written = {key: row for key, row in reduction.latest.items() if row is not None}
        self.rows = untouched | {key: self._filled(row) for key, row in written.items()}
        self.position = max(self.position, upto)

    def _filled(self, row: Row) -> Row:
        return {
            name: self.rows[value.key][value.column] if isinstance(value, LakeValue) else value
            for name, value in row.items()
        }


@dataclass(kw_only=True)
class Stream:
    """The events of one table that the connector has sent, and the txid of each."""

    source: Source = field(default_factory=lambda: Source(placeholder=PLACEHOLDER))
    transactions: list[int] = field(default_factory=list)
    landed: int = 0

    def assign(self, txid: int) -> int:
        """Assign the new events to a transaction; return their number."""
        new = len(self.source.log) - len(self.transactions)
        self.transactions += [txid] * new
        return new

    def events(self, after: int) -> list[ChangeEvent]:
        return [e for e in self.source.events()[: self.landed] if e.offset > after]

    def spans(self, after: int) -> dict[int, Span]:
        """Return the span of each transaction in the landed events after an offset."""
        spans: dict[int, Span] = {}
        for event, txid in zip(
            self.source.events()[: self.landed], self.transactions, strict=False
        ):
            if event.offset > after:
                old = spans.get(txid, Span(0, event.offset, event.offset))
                spans[txid] = Span(old.count + 1, old.first, event.offset)
        return spans


def _slices(events: Sequence[ChangeEvent], random: Random) -> Iterator[Sequence[ChangeEvent]]:
    """Yield overlapping slices that together have all events.

    No slice ends between the two events of a changed key.
    """
    ends = {n for n in range(1, len(events)) if random.random() < 0.5 and not events[n].moved}
    reached = 0
    for end in sorted(ends | {len(events)} - {0}):
        yield events[random.randint(0, reached) : end]
        reached = end


class Pipeline(RuleBasedStateMachine):
    """Source, topics and lake of two tables; hypothesis calls the rules in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.streams = {name: Stream() for name in TABLES}
        self.lake = {name: Table() for name in TABLES}
        self.ends: list[Marker] = []
        self.states: list[dict[str, Rows]] = [{name: {} for name in TABLES}]  # after each commit
        self.ends_landed = 0
        self.published = 0  # transactions
        self.base = dict.fromkeys(TABLES, -1)
        self.txid = 100

    @rule(seed=seeds)
    def transaction(self, seed: int) -> None:
        """Commit a few changes of both tables."""
        random = Random(seed)
        for _ in range(random.randint(1, 8)):
            source = self.streams[random.choice(TABLES)].source
            source.truncate() if random.random() < 0.05 else act(source, random, range(3))
        counts = {name: stream.assign(self.txid) for name, stream in self.streams.items()}
        sent = {name: count for name, count in counts.items() if count}
        lsn = 10 * len(self.ends) + 10
        self.ends.append(Marker(txid=self.txid, lsn=lsn, status=END, counts=sent))
        self.states.append({n: dict(stream.source.rows) for n, stream in self.streams.items()})
        self.txid -= 1  # an older transaction may commit later

    @rule(seed=seeds)
    def land(self, seed: int) -> None:
        """Land more of each topic; the END markers land independently of the tables."""
        random = Random(seed)
        for stream in self.streams.values():
            stream.landed = random.randint(stream.landed, len(stream.transactions))
        self.ends_landed = random.randint(self.ends_landed, len(self.ends))

    @rule(applied=st.lists(st.sampled_from(TABLES), unique=True, max_size=1))
    def round_that_dies(self, applied: list[str]) -> None:
        """Run a round that dies after it has applied these tables, before it publishes."""
        cut = self._cut()
        for name in applied:
            self._apply(name, cut)

    @rule()
    def round(self) -> None:
        """Apply and publish a cut; both tables equal the source after its last transaction."""
        cut = self._cut()
        for name in TABLES:
            self._apply(name, cut)
        self.published += cut.transactions
        self.base = {name: max(self.base[name], cut.offsets[name]) for name in TABLES}

        expected = self.states[self.published]
        assert {name: table.rows for name, table in self.lake.items()} == expected

    @rule(name=st.sampled_from(TABLES), seed=seeds)
    def rebuild(self, name: str, seed: int) -> None:
        """Rebuild a table from the log, in other slices, some events twice; its rows stay."""
        table, end = Table(), self.lake[name].position
        events = [e for e in self.streams[name].events(after=-1) if e.offset <= end]
        for part in _slices(events, Random(seed)):
            table.apply(part, part[-1].offset)
        assert table.rows == self.lake[name].rows
        self.lake[name] = replace(table, position=end)

    @rule(name=st.sampled_from(TABLES), seed=seeds)
    def redeliver(self, name: str, seed: int) -> None:
        """Apply events again that the table already has; its rows stay as they are."""
        table = self.lake[name]
        again = [e for e in self.streams[name].events(after=-1) if e.offset <= table.position]
        start, stop = sorted(Random(seed).choices(range(len(again) + 1), k=2))
        before = table.rows

        table.apply(again[start:stop], table.position)

        assert table.rows == before

    @invariant()
    def every_table_is_the_fold_of_what_it_applied(self) -> None:
        for name, table in self.lake.items():
            events = self.streams[name].events(after=-1)
            folded = fold((e for e in events if e.offset <= table.position), KEY, UNCHANGED)
            assert table.rows == {key[0]: dict(row) for key, row in folded.items()}
            assert table.position >= self.base[name]

    def _cut(self) -> Cut:
        landed = {name: stream.spans(self.base[name]) for name, stream in self.streams.items()}
        last = {
            name: max([self.base[name], *(e.offset for e in stream.events(self.base[name]))])
            for name, stream in self.streams.items()
        }
        return find_cut(self.ends[self.published : self.ends_landed], landed, last, bound=None)

    def _apply(self, name: str, cut: Cut) -> None:
        table = self.lake[name]
        if cut.offsets[name] > table.position:
            events = self.streams[name].events(after=table.position)
            upto = [event for event in events if event.offset <= cut.offsets[name]]
            table.apply(upto, cut.offsets[name])


TestPipeline = Pipeline.TestCase
TestPipeline.settings = settings(stateful_step_count=40)
