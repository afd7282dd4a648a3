"""Nexmark's events in any number, by the proportions and distributions of its generator. Pure.

Of fifty events one is a person, three are auctions and 46 are bids, with a time that rises by a
millisecond from event to event. Nexmark only inserts; here rows are updated and deleted as well.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.derived.table_rows import Change, Changes, Numbers, TableRows, set_column
from tests.suites.nexmark.events import SCHEMAS

_GROUP: Final = 50
_PEOPLE, _AUCTIONS = 1, 3
_BIDS: Final = _GROUP - _PEOPLE - _AUCTIONS
_FIRST: Final = 1000
_START: Final = np.datetime64(datetime(2015, 7, 15), "us")  # noqa: DTZ001 - as Nexmark's: without zone
_MILLISECOND: Final = np.timedelta64(1000, "us")
_IN_FLIGHT: Final = 100  # auctions that get bids
_ACTIVE: Final = 1000  # people who bid
_HORIZON: Final = _IN_FLIGHT * _GROUP // _AUCTIONS  # events
_STATES: Final = pa.array(["AZ", "CA", "ID", "OR", "WA", "WY"])
_CITIES: Final = pa.array(["Phoenix", "Los Angeles", "Boise", "Portland", "Seattle", "Kent"])
_NAMES: Final = pa.array(["Peter Jones", "Kate Smith", "Noris White", "Deiter Walton"])
_CHANNELS: Final = pa.array(["Google", "Facebook", "Baidu", "Apple"])
_UPDATED: Final = {"person": "city", "auction": "reserve", "bid": "price"}


@dataclass
class Market:
    """The rows of all tables as they are now, after so many ``events``."""

    seed: int
    events: int
    tables: dict[str, TableRows] = field(init=False)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        made = self._made(0, self.events)
        keys = range(20)
        side = {"key": list(keys), "value": [f"value {key}" for key in keys]}
        made["side_input"] = pa.table(side, SCHEMAS["side_input"])
        self.tables = {name: TableRows(rows) for name, rows in made.items()}

    def inserted(self, events: int) -> Changes:
        """Let so many events come, which only insert."""
        none = np.empty(0, dtype=np.int64)
        return self._applied(
            {name: Change(none, rows) for name, rows in self._next(events).items()}
        )

    def changed(self, rows: int) -> Changes:
        """Insert about so many rows, update and delete others: eight, one and one of ten."""
        few = max(1, rows // 10)
        made, changes = self._next(rows - 2 * few), {}
        for name, shares in (("person", _PEOPLE), ("auction", _AUCTIONS), ("bid", _BIDS)):
            table, size = self.tables[name], max(1, few * shares // _GROUP)
            some = self._random.choice(table.numbers(), 2 * size, replace=False)
            updated = self._updated(name, table.at(some[:size]))
            changes[name] = Change(some, pa.concat_tables([updated, made[name]]))
        return self._applied(changes)

    def _applied(self, changes: Changes) -> Changes:
        for name, change in changes.items():
            self.tables[name].apply(change)
        return changes

    def _next(self, events: int) -> dict[str, pa.Table]:
        first, self.events = self.events, self.events + events
        return self._made(first, self.events)

    def _updated(self, name: str, rows: pa.Table) -> pa.Table:
        column, count = _UPDATED[name], rows.num_rows
        values = self._any(_CITIES, count) if name == "person" else pa.array(self._prices(count))
        return set_column(rows, column, values)

    def _made(self, first: int, until: int) -> dict[str, pa.Table]:
        """Return the rows of the events with these numbers."""
        events = np.arange(first, until)
        place = events % _GROUP
        return {
            "person": self._people(events[place < _PEOPLE]),
            "auction": self._auctions(events[(place >= _PEOPLE) & (place < _GROUP - _BIDS)]),
            "bid": self._bids(events[place >= _GROUP - _BIDS]),
        }

    def _people(self, events: Numbers) -> pa.Table:
        count = len(events)
        numbers = pa.array(self._random.integers(0, 10**6, count)).cast(pa.string())
        columns = {
            "id": pa.array(_FIRST + events // _GROUP),
            "name": self._any(_NAMES, count),
            "email_address": _text("user", numbers, "@example.com"),
            "credit_card": _text(numbers, " 1234"),
            "city": self._any(_CITIES, count),
            "state": self._any(_STATES, count),
            "date_time": _time(events),
            "extra": self._extra(count),
        }
        return pa.table(columns, SCHEMAS["person"])

    def _auctions(self, events: Numbers) -> pa.Table:
        count, price = len(events), self._prices(len(events))
        keys = events // _GROUP * _AUCTIONS + events % _GROUP - _PEOPLE
        length = 1 + self._random.integers(0, 2 * _HORIZON, count)
        columns = {
            "id": pa.array(_FIRST + keys),
            "item_name": _text("item ", pa.array(keys % 1000).cast(pa.string())),
            "description": self._extra(count),
            "initial_bid": pa.array(price),
            "reserve": pa.array(price + self._prices(count)),
            "date_time": _time(events),
            "expires": _time(events + length),
            "seller": self._people_of(events),
            "category": pa.array(self._random.integers(10, 15, count)),
            "extra": self._extra(count),
        }
        return pa.table(columns, SCHEMAS["auction"])

    def _bids(self, events: Numbers) -> pa.Table:
        count, last = len(events), (events // _GROUP + 1) * _AUCTIONS - 1
        other = self._random.integers(0, 10_000, count)
        numbered = _text("channel-", pa.array(other).cast(pa.string()))
        channel = pc.if_else(self._hot(count, 1 / 2), self._any(_CHANNELS, count), numbered)
        columns = {
            "id": pa.array(_FIRST + events // _GROUP * _BIDS + events % _GROUP - _GROUP + _BIDS),
            "auction": self._recent(last, _IN_FLIGHT, 1 / 2),
            "bidder": self._people_of(events),
            "price": pa.array(self._prices(count)),
            "channel": channel,
            "url": _text("https://www.nexmark.com/", channel, "/item.htm?query=1"),
            "date_time": _time(events),
            "extra": self._extra(count),
        }
        return pa.table(columns, SCHEMAS["bid"])

    def _people_of(self, events: Numbers) -> pa.Array:
        return self._recent(events // _GROUP, _ACTIVE, 3 / 4)

    def _recent(self, last: Numbers, window: int, hot: float) -> pa.Array:
        """Return one of the newest keys each; a share of them is the same for many events."""
        count = len(last)
        back = self._random.integers(0, np.minimum(window, last + 1))
        return pa.array(_FIRST + np.where(self._hot(count, hot), last // 100 * 100, last - back))

    def _hot(self, count: int, share: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return self._random.random(count) < share

    def _any(self, values: pa.Array, count: int) -> pa.Array:
        return values.take(pa.array(self._random.integers(0, len(values), count)))

    def _prices(self, count: int) -> Numbers:
        return np.round(10 ** (self._random.random(count) * 6) * 100).astype(np.int64)

    def _extra(self, count: int) -> pa.Array:
        return pa.array([f"{n:x}" for n in self._random.integers(0, 2**40, count).tolist()])


def _time(events: Numbers) -> pa.Array:
    return pa.array(_START + events * _MILLISECOND)


def _text(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")
