"""A lake in memory, for the way of applying that needs no Spark."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from cdc.apply.local.batch import LocalBatch, Outcome
from cdc.apply.local.change import Key
from cdc.apply.local.decode import TableDecoder
from cdc.apply.local.identity import key_of
from cdc.config import Job
from cdc.events.schema import TableSchema
from cdc.lake.table.merge_plan import COPY, ROW_HASH, stored_columns
from cdc.lake.table.plain_values import plain_values
from cdc.lake.table.positions import Position
from cdc.tables import TableMode
from tests.events.recorded import Message

LOG: pa.Schema = pa.schema(
    [
        ("topic", pa.string()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("key_schema_id", pa.int32()),
        ("value_schema_id", pa.int32()),
    ]
)


def log_table(messages: Iterable[Message]) -> pa.Table:
    """Return the messages as rows of the log."""
    rows = [dict(zip(LOG.names, message.row(), strict=True)) for message in messages]
    for row in rows:
        row["headers"] = [{"key": key, "value": value} for key, value in row["headers"]]
    return pa.Table.from_pylist(rows, schema=LOG)


@dataclass(kw_only=True)
class LocalLake:
    """One table: its rows by key, or by digest and copy, or those appended."""

    schema: TableSchema
    decoder: TableDecoder
    policy: Job = field(default_factory=Job)
    position: Position = field(default_factory=lambda: Position(epoch=1, offset=-1))
    by_key: dict[Key, Sequence[Any]] = field(default_factory=dict)
    own: dict[Key, tuple[Any, ...]] = field(default_factory=dict)
    """Our own columns of each row."""
    refused: dict[int, str] = field(default_factory=dict)

    def apply(self, messages: Sequence[Message]) -> Outcome:
        batch = LocalBatch(
            schema=self.schema,
            position=self.position,
            decoder=self.decoder,
            lake=self,
            policy=self.policy,
        )
        outcome = batch.outcome(log_table(messages), messages[-1].offset)
        if outcome.truncated:
            self.by_key.clear()
        for key in self._identities(outcome.deletes):
            self.by_key.pop(key, None)
        columns = [plain_values(outcome.upserts[name]) for name in self.schema.names]
        rows = list(zip(*columns, strict=True))
        keys = self._identities(outcome.upserts, rows)
        self.by_key.update(zip(keys, rows, strict=True))
        own = [name for name in stored_columns(self.schema) if name not in self.schema.names]
        columns = [outcome.upserts[name].to_pylist() for name in own]
        self.own.update(zip(keys, zip(*columns, strict=True), strict=True))
        self.position = outcome.position
        self.refused |= dict(zip(*outcome.refused.to_pydict().values(), strict=True))
        return outcome

    def rows(self, keys: Collection[Key], columns: Sequence[int]) -> Mapping[Key, Sequence[Any]]:
        return {
            key: [self.by_key[key][number] for number in columns]
            for key in keys
            if key in self.by_key
        }

    def copies(self, digests: Collection[str]) -> Mapping[str, int]:
        held: dict[str, int] = defaultdict(int)
        for digest, _ in self.by_key:
            held[digest] += 1
        return {digest: held[digest] for digest in digests}

    def stored(self) -> list[tuple[Any, ...]]:
        """Return the rows with our own columns."""
        return [(*row, *self.own[key]) for key, row in self.by_key.items()]

    def values(self) -> list[dict[str, Any]]:
        return [dict(zip(self.schema.names, row, strict=True)) for row in self.by_key.values()]

    def _identities(self, table: pa.Table, rows: Sequence[Sequence[Any]] = ()) -> list[Key]:
        if self.schema.mode is TableMode.MULTISET:
            return list(zip(table[ROW_HASH].to_pylist(), table[COPY].to_pylist(), strict=True))
        if self.schema.mode is TableMode.APPEND:
            return [(len(self.by_key) + number,) for number in range(len(table))]
        names = self.schema.names
        made = {name: plain_values(table[name]) for name in self.schema.key}
        blank = [[None] * len(table)]
        whole = rows or list(zip(*(made.get(name, blank[0]) for name in names), strict=True))
        keys = [key_of(self.schema)(row) for row in whole]
        assert None not in keys
        return [key for key in keys if key is not None]
