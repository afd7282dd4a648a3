"""Make people, auctions and bids of Nexmark as captured tables, which change from cut to cut.

The columns are those of Nexmark's generator, and its ids, prices and channels are drawn as there,
on a smaller scale. Nexmark only inserts; here rows are updated and deleted as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final

import pyarrow as pa

_TIME: Final = pa.timestamp("us")
SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    "person": pa.schema(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("email_address", pa.string()),
            ("credit_card", pa.string()),
            ("city", pa.string()),
            ("state", pa.string()),
            ("date_time", _TIME),
            ("extra", pa.string()),
        ]
    ),
    "auction": pa.schema(
        [
            ("id", pa.int64()),
            ("item_name", pa.string()),
            ("description", pa.string()),
            ("initial_bid", pa.int64()),
            ("reserve", pa.int64()),
            ("date_time", _TIME),
            ("expires", _TIME),
            ("seller", pa.int64()),
            ("category", pa.int64()),
            ("extra", pa.string()),
        ]
    ),
    "bid": pa.schema(
        [
            ("id", pa.int64()),  # Nexmark's bids have no key, and cannot be changed
            ("auction", pa.int64()),
            ("bidder", pa.int64()),
            ("price", pa.int64()),
            ("channel", pa.string()),
            ("url", pa.string()),
            ("date_time", _TIME),
            ("extra", pa.string()),
        ]
    ),
    "side_input": pa.schema([("key", pa.int64()), ("value", pa.string())]),
}
_START: Final = datetime(2015, 7, 15, 5, 59)  # noqa: DTZ001 - without zone, as Nexmark's
_STATES: Final = ("AZ", "CA", "ID", "OR", "WA", "WY", None)
_CHANNELS: Final = ("Google", "FACEBOOK", "baidu", "Apple", "channel-77", None)
Row = dict[str, Any]
World = Mapping[str, Sequence[Row]]


class Market:
    """The rows of all tables as they are now."""

    def __init__(self, seed: int, people: int, auctions: int, bids: int) -> None:
        self._random = Random(seed)
        self.rows: dict[str, dict[int, Row]] = {name: {} for name in SCHEMAS}
        self._next = 1000
        self._add("person", people)
        self._add("auction", auctions)
        self._add("bid", bids)
        for key in range(20):
            self.rows["side_input"][key] = {"key": key, "value": f"value {key}"}

    def world(self) -> World:
        """Return the rows of every table."""
        return {name: list(rows.values()) for name, rows in self.rows.items()}

    def change(self, share: float) -> None:
        """Update, delete and insert so large a part of the rows of each table."""
        for name in ("person", "auction", "bid"):
            rows, make = self.rows[name], getattr(self, f"_{name}")
            some = self._random.sample(sorted(rows), max(2, int(len(rows) * share)))
            for number, key in enumerate(some):
                if number % 3 == 0:
                    del rows[key]
                else:
                    self._update(rows[key], make(key))
            self._add(name, len(some) // 3 + 1)
        key = self._random.randrange(20)
        self.rows["side_input"][key] = {"key": key, "value": f"value {self._random.random()}"}

    def _update(self, row: Row, other: Row) -> None:
        """Take one or two values of another row, which may be its time or what it refers to."""
        for name in self._random.sample(sorted(set(row) - {"id"}), 2):
            row[name] = other[name]

    def _add(self, name: str, count: int) -> None:
        for _ in range(count):
            self._next += 1
            self.rows[name][self._next] = getattr(self, f"_{name}")(self._next)

    def _person(self, key: int) -> Row:
        number = self._random.randrange(10**6)
        return {
            "id": key,
            "name": self._random.choice(("Peter Jones", "Kate Smith", "Noris Müller", "")),
            "email_address": f"user{number}@example.com",
            "credit_card": f"{number:04} 1234",
            "city": self._random.choice(("Phoenix", "Palo Alto", "Boise", "Portland")),
            "state": self._random.choice(_STATES),
            "date_time": self._time(),
            "extra": self._extra(),
        }

    def _auction(self, key: int) -> Row:
        time, price = self._time(), self._price()
        return {
            "id": key,
            "item_name": f"item {key % 7}",
            "description": self._extra(),
            "initial_bid": price,
            "reserve": price + self._price(),
            "date_time": time,
            "expires": time + timedelta(seconds=self._random.randrange(1, 60)),
            "seller": self._one_of("person"),
            "category": self._random.choice((10, 10, 11, 12, 13)),
            "extra": self._extra(),
        }

    def _bid(self, key: int) -> Row:
        auction = self._one_of("auction")
        begun = self.rows["auction"].get(auction, {}).get("date_time") or _START
        channel = self._random.choice(_CHANNELS)
        return {
            "id": key,
            "auction": auction,
            "bidder": self._one_of("person"),
            "price": self._price(),
            "channel": channel,
            "url": _url(channel, key),
            "date_time": begun + timedelta(milliseconds=self._random.randrange(-5_000, 60_000)),
            "extra": self._extra(),
        }

    def _one_of(self, name: str) -> int:
        """Return a key of the table, some more often than others, or one that is not there."""
        keys = sorted(self.rows[name])
        if self._random.random() < 0.05:
            return 999
        return keys[min(int(self._random.expovariate(8) * len(keys)), len(keys) - 1)]

    def _time(self) -> datetime:
        hours = self._random.choice((0, 1, 3, 8, 15))
        return _START + timedelta(hours=hours, milliseconds=self._random.randrange(60_000))

    def _price(self) -> int:
        return int(10 ** (self._random.random() * 6) * 100)

    def _extra(self) -> str:
        return "".join(self._random.choices("abcCé ", k=self._random.randrange(6)))


def _url(channel: str | None, key: int) -> str:
    """Of one in five the channel's number is not there, not the last, first or empty."""
    base = f"https://www.nexmark.com/{channel}/{key % 7}/é/item.htm?query=1"
    number = f"channel_id={key % 90}"
    every = {
        0: base,
        1: f"{base}&{number}&channel_id=x",
        2: f"{number}&a/b/c",
        3: f"{base}&channel_id=&xchannel_id=1",
    }
    return every.get(key % 20, f"{base}&{number}")


def cuts(seed: int, count: int, scale: int = 1) -> Iterator[World]:
    """Yield the rows at each cut; they are the same for the same arguments."""
    market = Market(seed, people=30 * scale, auctions=40 * scale, bids=250 * scale)
    yield market.world()
    for _ in range(count - 1):
        market.change(0.08)
        yield market.world()
