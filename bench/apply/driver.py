"""Ours on the driver: the key index finds the rows, one commit of deletion vectors writes."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from pyarrow import fs

from bench.apply.way import after
from cdc.lake.commit.committer import Committer, OpenTable
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.key_index.data_file import DataFile
from cdc.lake.key_index.key_columns import KeyColumn
from cdc.lake.key_index.key_index import IndexStatistics, KeyIndex
from cdc.lake.key_index.places import LiveFile

INDEX_BYTES = 512 * 2**20
SUMMARY = "select count(*) as rows, sum(revision) as revisions from t"


class DriverApplier:
    """Applies batches by Committer and KeyIndex; its index is made when it is opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._committer = Committer(str(path))
        table = self._committer.open()
        key = next(column for column in table.metadata.columns if column.name == "id")
        self._index = KeyIndex(
            key=[KeyColumn("id", key.physical, "bigint")],
            table=fs.SubTreeFileSystem(str(path), fs.LocalFileSystem()),
            directory=path.with_name(f"{path.name}-index"),
            memory_bytes=INDEX_BYTES,
        )
        self._index.prepare(live.file for live in self._live(table))

    def apply(self, batch: Path, low: int, high: int) -> None:  # noqa: ARG002 - as the others
        """Apply the batch in one commit."""
        rows = pq.read_table(batch)
        table = self._committer.open()
        live = self._live(table)
        places = self._index.look_up(rows.select(["id"]), live)
        kept = rows.filter(pc.invert(rows["deleted"])).drop_columns(["deleted"])
        schema = arrow_schema(table.metadata)
        revision = int(rows["revision"][0].as_py())
        version = self._committer.commit(
            kept.select(schema.names).cast(schema), places.rows_by_file(), after(revision)
        )
        if self._committer.due_for_checkpoint(version - 1, version) is not None:
            self._committer.checkpoint(version)

    def summary(self) -> tuple[int, int]:
        """Return what delta-rs, which shares no code with ours, reads."""
        return delta_summary(self._path)

    def statistics(self) -> IndexStatistics:
        """Return what the index holds."""
        return self._index.statistics()

    def bytes_per_key(self) -> float:
        """Return the bytes of the index per key."""
        return self._index.bytes_per_key()

    def _live(self, table: OpenTable) -> list[LiveFile]:
        return [
            LiveFile(
                DataFile(file.path, file.size, file.records, file.modified),
                np.array(self._committer.deleted_rows(file), dtype=np.int64),
            )
            for file in table.files.values()
        ]


def delta_summary(path: Path) -> tuple[int, int]:
    """Return the number of rows and the sum of their revisions, read by delta-rs."""
    query = QueryBuilder().register("t", DeltaTable(str(path))).execute(SUMMARY)
    (row,) = pa.table(query.read_all()).to_pylist()
    return int(row["rows"]), int(row["revisions"] or 0)
