"""A table of the lake at the version of a cut, as texts."""

import math
from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from cdc.client.verify.render import Rendering
from cdc.errors import CdcError, ErrorKind
from cdc.events.values.sql_text import fusion_name
from cdc.lake.records.ledger import TableEntry
from cdc.observe.defects import told

OWN: Final = frozenset({"_cdc_offset", "_cdc_row_hash", "_cdc_copy"})
"""Our columns, which the source does not have."""

BUCKET_ROWS: Final = 400_000
BUCKET_BYTES: Final = 16 << 20
"""Of Parquet; its texts take some ten times as much memory."""


class LakeTable:
    """What the ledger says is published of a table; it need not exist yet."""

    def __init__(self, entry: TableEntry | None) -> None:
        self._table = _open(entry) if entry is not None and entry.version >= 0 else None
        schema = pa.schema(self._table.schema().to_arrow()) if self._table else pa.schema([])
        self.types: dict[str, pa.DataType] = {
            column.name: column.type for column in schema if column.name not in OWN
        }

    @property
    def exists(self) -> bool:
        return self._table is not None

    def rows(self, renderings: Mapping[str, Rendering]) -> Iterator[pa.Table]:
        """Tables with a text column ``c0, c1, ..`` per rendering, in no order."""
        if self._table is None:
            return
        columns = ", ".join(fusion_name(name) for name in renderings)
        query = f"SELECT {columns} FROM lake"  # noqa: S608 - quoted
        answer = QueryBuilder().register("lake", self._table).execute(query)
        for batch in pa.RecordBatchReader.from_stream(answer):
            yield pa.table(
                {
                    f"c{position}": rendering.lake(batch.column(position))
                    for position, rendering in enumerate(renderings.values())
                }
            )

    def buckets(self) -> int:
        """Into how many parts to deal the rows so that one part fits into memory easily."""
        if self._table is None:
            return 1
        files = pa.table(self._table.get_add_actions(flatten=True))
        rows, size = (
            sum(value or 0 for value in files.column(name).to_pylist())
            for name in ("num_records", "size_bytes")
        )
        return max(1, math.ceil(rows / BUCKET_ROWS), math.ceil(size / BUCKET_BYTES))


def _open(entry: TableEntry) -> DeltaTable:
    try:
        return DeltaTable(entry.path, version=entry.version)
    except DeltaError as error:
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"version {entry.version} of table {entry.table}, which the ledger names, is gone",
            detail=told(error),
            remedy="was the directory of the table removed? wal2lake status shows its state",
        ) from None
