"""Holds the rows of a captured table while its events are read: as they were before the next."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from cdc.apply.local.change import Key
from cdc.apply.local.identity import key_of
from cdc.derive.engine.input import Input
from cdc.derive.engine.inputs import rows
from cdc.derive.log.event import Row
from cdc.events.schema import TableSchema
from cdc.events.values.sql_text import fusion_name, fusion_string
from cdc.lake.table.plain_values import plain_values

_MOST_LITERALS: Final = 1000
"""Of keys in a condition; of more the whole table is read."""
_PLAIN: Final = frozenset({"smallint", "int", "bigint", "string"})


@dataclass(slots=True)
class Images:
    """Holds the table at one version, and over it the rows that events have changed since.

    ``at`` is None while the table has no rows beside those. It is a ``RowsBefore``.
    """

    schema: TableSchema
    at: Input | None
    _over: dict[Key, Row | None] = field(default_factory=dict)

    def rows(self, keys: Collection[Key]) -> Mapping[Key, Row]:
        """Return the rows of these keys; absent ones are left out."""
        asked = {key for key in keys if key not in self._over}
        found = {key: row for key in keys if (row := self._over.get(key)) is not None}
        if asked and self.at is not None:
            stored = self._stored(self.at, _condition(self.schema, asked))
            found |= {key: row for key, row in stored if key in asked}
        return found

    def set(self, key: Key | None, row: Row | None) -> None:
        """Note what an event made of a row: None where it deleted it."""
        if key is not None:
            self._over[key] = row

    def begin(self, at: Input | None) -> None:
        """Begin anew with a table, or with none after a TRUNCATE."""
        self.at = at
        self._over.clear()

    def merge(self, difference: Input, gone: str) -> None:
        """Take in a reading's difference; the column ``gone`` says which rows are deleted."""
        names = [*self.schema.names, gone]
        for batch in rows(difference.open(), names):
            gone_ones = batch.column(gone).to_pylist()
            for (key, row), is_gone in zip(_keyed(batch, self.schema), gone_ones, strict=True):
                self.set(key, None if is_gone else row)

    def all(self) -> Iterator[tuple[Key, Row]]:
        """Yield every row; of a table without a key none, because it is not known how often."""
        if self.at is not None and self.schema.key:
            yield from (pair for pair in self._stored(self.at, "") if pair[0] not in self._over)
        yield from ((key, row) for key, row in self._over.items() if row is not None)

    def _stored(self, at: Input, condition: str) -> Iterator[tuple[Key, Row]]:
        opened = at.open()
        have = {each.name for each in opened.schema().fields}
        lacking = [name for name in self.schema.names if name not in have]
        names = [name for name in self.schema.names if name in have]
        for batch in rows(opened, names, condition):
            whole = pa.Table.from_batches([batch])
            for name in lacking:
                whole = whole.append_column(name, pa.nulls(len(whole)))
            yield from _keyed(whole, self.schema)


def _keyed(batch: pa.Table | pa.RecordBatch, schema: TableSchema) -> Iterator[tuple[Key, Row]]:
    key = key_of(schema)
    for row in zip(*(plain_values(batch.column(name)) for name in schema.names), strict=True):
        found = key(row)
        if found is not None:
            yield found, list(row)


def _condition(schema: TableSchema, keys: Collection[Key]) -> str:
    """Return a condition that the rows of these keys fulfil, so that files can be left out."""
    values = {key[0] for key in keys}
    if len(values) > _MOST_LITERALS or not all(type(value) in {int, str} for value in values):
        return ""
    if schema.columns[schema.names.index(schema.key[0])].type not in _PLAIN:
        return ""
    texts = (fusion_string(v) if isinstance(v, str) else str(v) for v in values)
    return f"WHERE {fusion_name(schema.key[0])} IN ({', '.join(texts)})"
