"""Converts what readers bring of one table, and says where it goes."""

from dataclasses import dataclass

import pyarrow as pa

from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.commit.replay import LiveFile
from cdc.lake.commit.table_metadata import Metadata
from cdc.lake.files.file_store import FileStore
from cdc.lake.table.merge_plan import OFFSET
from cdc.operations.resnapshot.copies import Copies
from cdc.operations.resnapshot.refused_row import RefusedRow, converted
from cdc.operations.resnapshot.target import Target
from cdc.tables import TableId


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedTable:
    """Describes a table whose rows are copied to files beside its first version."""

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
        kept, refused = converted(texts, self.target)
        return self._stored(copies.numbered(kept)), refused

    def _stored(self, rows: pa.Table) -> pa.Table:
        offsets = pa.repeat(pa.scalar(self.offset, pa.int64()), rows.num_rows)
        whole = rows.append_column(OFFSET, offsets)
        schema = arrow_schema(self.metadata)
        return whole.select(schema.names).cast(schema)


@dataclass(frozen=True, slots=True)
class CopiedRange:
    """Holds what a reader has brought of a range; no version of the table has its files yet."""

    files: list[LiveFile]
    rows: int
    refused: list[RefusedRow]
