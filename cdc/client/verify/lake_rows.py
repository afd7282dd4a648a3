"""Read a table of the lake, at the version of a cut, as the texts to compare."""

import math
from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from cdc.client.verify.render import Rendering
from cdc.errors import CdcError, ErrorKind
from cdc.events.values.sql_text import fusion_name
from cdc.lake.files.delta import delta_table
from cdc.lake.files.unreachable import refuse_silence
from cdc.lake.records.ledger import TableEntry
from cdc.observe.defects import error_text

OWN: Final = frozenset({"_cdc_offset", "_cdc_row_hash", "_cdc_copy"})
"""Columns that wal2lake adds and the source does not have."""

BUCKET_ROWS: Final = 400_000
BUCKET_BYTES: Final = 16 << 20
"""Bytes of Parquet files; as texts they take about ten times as much memory."""


class LakeTable:
    """Reads a table as it is published in the ledger; it may not exist yet."""

    def __init__(self, entry: TableEntry | None) -> None:
        self._table = _open(entry) if entry is not None and entry.version >= 0 else None
        schema = pa.schema(self._table.schema().to_arrow()) if self._table else pa.schema([])
        self.types: dict[str, pa.DataType] = {
            column.name: column.type for column in schema if column.name not in OWN
        }

    @property
    def exists(self) -> bool:
        """Return whether the lake has the table."""
        return self._table is not None

    def rows(self, renderings: Mapping[str, Rendering]) -> Iterator[pa.Table]:
        """Yield the rows in any order, with a text column ``c0, c1, ...`` for each rendering."""
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
        """Return into how many parts to deal the rows so that each fits into memory easily."""
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
        return delta_table(entry.path, entry.version)
    except DeltaError as error:
        refuse_silence(error)
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"version {entry.version} of table {entry.table}, which the ledger names, is gone",
            detail=error_text(error),
            remedy="check that the table's directory still exists; wal2lake status shows its state",
        ) from None
