"""Converts what readers bring of one table, and says where it goes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.commit.replay import LiveFile
from cdc.lake.commit.table_metadata import Metadata
from cdc.lake.files.file_store import FileStore
from cdc.lake.table.merge_plan import OFFSET
from cdc.operations.first_snapshot.copies import Copies
from cdc.operations.resnapshot.arrow_values import arrow_rows
from cdc.operations.resnapshot.target import Target
from cdc.tables import TableId


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row that the lake cannot hold: its key, as JSON, and the reason."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedTable:
    """A table whose rows are copied to files beside its first version."""

    table: TableId
    target: Target
    files: FileStore  # of the table
    metadata: Metadata
    offset: int  # of the cut; every row has it

    def copies(self) -> Copies:
        """Return what numbers the copies of equal rows in one reading of the whole table."""
        return Copies(self.target.schema)

    def converted(self, texts: pa.Table, copies: Copies) -> tuple[pa.Table, list[RefusedRow]]:
        """Return the rows for the lake's table, and those that it cannot hold."""
        followed = self.target.structure.followed
        made = arrow_rows(texts, [c.column for c in followed], [c.pg for c in followed])
        if made.reasons.null_count == len(made.reasons):
            return self._stored(copies.numbered(made.rows)), []
        kept = made.rows.filter(pc.is_null(made.reasons))
        return self._stored(copies.numbered(kept)), list(self._refused(made.rows, made.reasons))

    def _stored(self, rows: pa.Table) -> pa.Table:
        offsets = pa.repeat(pa.scalar(self.offset, pa.int64()), rows.num_rows)
        whole = rows.append_column(OFFSET, offsets)
        schema = arrow_schema(self.metadata)
        return whole.select(schema.names).cast(schema)

    def _refused(self, rows: pa.Table, reasons: pa.Array) -> Iterator[RefusedRow]:
        there = pc.is_valid(reasons)
        keys = rows.select(list(self.target.schema.key)).filter(there).to_pylist()
        if not keys:  # a table without a key has a list of no names
            keys = [{} for _ in range(pc.sum(there).as_py())]
        for key, reason in zip(keys, reasons.filter(there).to_pylist(), strict=True):
            texts = {name: _text(value) for name, value in key.items()}
            yield RefusedRow(json.dumps(texts), reason)


@dataclass(frozen=True, slots=True)
class CopiedRange:
    """What a reader has brought of a range: files that no version has yet, and counts."""

    files: list[LiveFile]
    rows: int
    refused: list[RefusedRow]


def _text(value: Any) -> str | None:  # noqa: ANN401 - of any type of the lake
    return None if value is None else str(value)
