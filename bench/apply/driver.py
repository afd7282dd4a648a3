"""Ours on the driver: the key index finds the rows, one commit of deletion vectors writes."""

from pathlib import Path
from typing import Final

import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.apply.base import SCHEMA
from bench.apply.summary import delta_summary
from bench.apply.way import after
from cdc.apply.local.places import RowPlaces, key_columns
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.key_index.data_file import DataFile
from cdc.lake.key_index.key_index import IndexStatistics

INDEX_BYTES: Final = 512 * 2**20


class DriverApplier:
    """Applies batches as the job does on the driver; its index is made when it is opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._committer = Committer(str(path))
        self._places = RowPlaces(str(path), path.with_name(f"{path.name}-index"), INDEX_BYTES)
        table = self._committer.open()
        self._index = self._places.index(key_columns(SCHEMA, table.metadata))
        self._index.prepare(
            DataFile(file.path, file.size, file.records, file.modified)
            for file in table.files.values()
        )

    def apply(self, batch: Path, low: int, high: int) -> None:  # noqa: ARG002 - as the others
        """Apply the batch in one commit."""
        rows = pq.read_table(batch)
        table = self._committer.open()
        version = self._places.at(SCHEMA, table, self._committer.deleted_rows)
        places = version.look_up(rows.select(["id"]))
        kept = rows.filter(pc.invert(rows["deleted"])).drop_columns(["deleted"])
        schema = arrow_schema(table.metadata)
        revision = int(rows["revision"][0].as_py())
        committed = self._committer.commit(
            kept.select(schema.names).cast(schema), places.rows_by_file(), after(revision)
        )
        if self._committer.due_for_checkpoint(committed - 1, committed) is not None:
            self._committer.checkpoint(committed)

    def summary(self) -> tuple[int, int]:
        """Return what delta-rs, which shares no code with ours, reads."""
        return delta_summary(self._path)

    def statistics(self) -> IndexStatistics:
        """Return what the index holds."""
        return self._index.statistics()

    def bytes_per_key(self) -> float:
        """Return the bytes of the index per key."""
        return self._index.bytes_per_key()
