"""Models a source table with large values, and the events that its changes make.

The table is the recorded ``toasty``; an update sends the placeholder for each large value that it
leaves as it is, as Postgres does. The rows of the model are what Postgres would show: the oracle
of the oracle.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from cdc.events import avro
from cdc.events.envelope import OLD_KEY, ChangeEvent, change_event
from cdc.tables import TableId
from tests.events.recorded import Message, recording, table_topic

TABLE = TableId("public", "toasty")
TOPIC = table_topic("toasty")
SCHEMA_ID = 127
LARGE: dict[str, Callable[[int], Any]] = {
    "big": lambda v: f"text {v}",
    "bigb": lambda v: f"bytes {v}".encode(),
    "bigj": lambda v: f'{{"v": {v}}}',
    "biga": lambda v: [f"item {v}", None, ""],
    "bigia": lambda v: [v, None, -v],
    "bigh": lambda v: f'{{"k":"{v}"}}',
}
Row = dict[str, Any]


def placeholders(placeholder: str) -> Row:
    """As recorded: what stands for an unchanged value, by column."""
    data = placeholder.encode()
    return {
        "big": placeholder,
        "bigb": data,
        "bigj": placeholder,
        "biga": [placeholder],
        "bigia": [byte - 256 if byte > 127 else byte for byte in data],
        "bigh": f'{{"{placeholder}":"{placeholder}"}}',
    }


@dataclass(kw_only=True)
class Source:
    """Holds rows by id, and the log of what happened to them."""

    placeholder: str
    rows: dict[int, Row] = field(default_factory=dict)
    log: list[tuple[int, Row]] = field(default_factory=list)
    offset: int = 0
    moved: set[int] = field(default_factory=set)
    """Offsets of creates that are the second half of a key's change."""

    def insert(self, key: int, n: int, value: int | None, op: str = "c") -> None:
        large = {name: None if value is None else make(value) for name, make in LARGE.items()}
        self.rows[key] = {"id": key, "n": n, **large}
        self._emit(op, after=self.rows[key])

    def update(self, key: int, n: int, changed: dict[str, int | None]) -> None:
        """``changed``: new large values; the others are not sent."""
        old = self.rows[key]
        new = {c: None if v is None else LARGE[c](v) for c, v in changed.items()}
        self.rows[key] = {**old, "n": n, **new}
        self._emit("u", after={**self.rows[key], **self._hidden(old, changed)})

    def delete(self, key: int) -> None:
        del self.rows[key]
        self._emit("d", before={"id": key, "n": 0, **dict.fromkeys(LARGE)})
        self.offset += 1  # the tombstone

    def rekey(self, old: int, new: int, changed: dict[str, int | None]) -> None:
        """A delete and a create, which does not carry the large values that stay either."""
        row = self.rows[old]
        self.delete(old)
        large = {c: None if v is None else LARGE[c](v) for c, v in changed.items()}
        self.rows[new] = {**row, "id": new, **large}
        self.moved.add(self.offset)
        self._emit("c", after={**self.rows[new], **self._hidden(row, changed)})

    def truncate(self) -> None:
        self.rows.clear()
        self._emit("t")

    def _hidden(self, old: Row, changed: dict[str, int | None]) -> Row:
        return {
            name: mark
            for name, mark in placeholders(self.placeholder).items()
            if name not in changed and old[name] is not None
        }

    def events(self) -> list[ChangeEvent]:
        return [
            change_event(TOPIC, offset, value, headers=self._headers(offset))
            for offset, value in self.log
        ]

    def _headers(self, offset: int) -> dict[str, bytes]:
        return {OLD_KEY: b"{}"} if offset in self.moved else {}

    def messages(self) -> list[Message]:
        text = recording("tables").schemas[SCHEMA_ID]
        return [
            Message(
                topic=TOPIC,
                offset=at,
                key=None,
                value=avro.encode(text, SCHEMA_ID, value),
                headers=tuple(self._headers(at).items()),
            )
            for at, value in self.log
        ]

    def _emit(self, op: str, before: Row | None = None, after: Row | None = None) -> None:
        self.log.append((self.offset, envelope(TABLE, op, before=before, after=after)))
        self.offset += 1


def envelope(table: TableId, op: str, *, before: Row | None, after: Row | None) -> Row:
    return {
        "op": op,
        "before": None if before is None else dict(before),
        "after": None if after is None else dict(after),
        "source": {
            "version": "3.7.0.Final",
            "connector": "postgresql",
            "name": "wal2lake",
            "ts_ms": 0,
            "db": "app",
            "schema": table.schema,
            "table": table.name,
            "lsn": 1,
        },
        "transaction": {"id": "7:1", "total_order": 1, "data_collection_order": 1},
    }


def legal_ends(source: Source, ends: Iterable[int]) -> list[int]:
    """Move each end that lies between the two events of a changed key behind the second.

    A cut never ends between them. Ends are numbers of events; those outside the log are left out.
    """
    offsets = [at for at, _ in source.log]
    return [n + (offsets[n] in source.moved) for n in ends if 0 < n < len(offsets)]


def act(source: Source, random: Random, keys: range) -> None:
    """One legal change of a random one of the keys."""
    key, other = random.choice(keys), random.choice(keys)
    value = random.choice([None, *range(5)])
    if key not in source.rows:
        source.insert(key, random.randrange(9), value, op=random.choice("ccr"))
        return
    kind = random.random()
    columns = random.sample(sorted(LARGE), random.choice([0, 0, 0, 1, 2, len(LARGE)]))
    changed = {name: random.choice([None, *range(5)]) for name in columns}
    if kind < 0.6:
        source.update(key, random.randrange(9), changed)
    elif kind < 0.75 or (other in source.rows and kind < 0.85):
        source.delete(key)
    elif other not in source.rows:
        source.rekey(key, other, changed)
