"""A lake of tables as the job writes captured ones, with a cut after every change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from bench.derived.table_rows import Change, Changes, Numbers
from cdc.derive.engine.input import Input
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.create.whole_table import replace_table
from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.lake.table.positions import Position
from cdc.tables import TableId

SCHEMA: Final = "shop"
_OFFSET: Final = "_cdc_offset"
_POSITION: Final = Position(epoch=1, offset=1)
_PROPERTIES: Final = {
    "delta.enableDeletionVectors": "true",
    "delta.columnMapping.mode": "name",
    "delta.checkpointInterval": "50",
}
_TYPES: Final = {
    pa.int64(): "long",
    pa.int32(): "integer",
    pa.string(): "string",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
}


@dataclass
class Lake:
    """Commits to the tables in a folder, which keep all their versions."""

    folder: Path
    _first: dict[str, list[int]] = field(default_factory=dict)
    """The number of the first row of each file, by table."""
    _paths: dict[str, list[str]] = field(default_factory=dict)
    _cuts: list[dict[str, int]] = field(default_factory=list)

    def create(self, tables: Mapping[str, pa.Table]) -> None:
        """Make the tables, and the first cut."""
        for name, rows in tables.items():
            fields = [_field(one) for one in rows.schema.append(pa.field(_OFFSET, pa.int64()))]
            replace_table(
                self.path(name), fields, _PROPERTIES, _with_offset(rows), _POSITION.metadata()
            )
            files = Committer(self.path(name)).open().files.values()
            self._paths[name] = [file.path for file in files]
            self._first[name] = np.cumsum([0, *(file.records for file in files)]).tolist()
        self._cuts.append(dict.fromkeys(tables, 0))

    def commit(self, changes: Changes) -> None:
        """Commit the changes, and make the next cut."""
        versions = {name: self._commit(name, change) for name, change in changes.items()}
        self._cuts.append({**self._cuts[-1], **versions})

    def path(self, name: str) -> str:
        """Return where a table is."""
        return str(self.folder / SCHEMA / name)

    def inputs(self, cut: int) -> dict[TableId, Input]:
        """Return the tables at a cut, the first of which is 0."""
        versions = self._cuts[cut].items()
        return {TableId(SCHEMA, name): Input(self.path(name), v) for name, v in versions}

    def row(self, cut: int) -> LedgerRow:
        """Return the cut as the ledger would have it."""
        entries = (
            TableEntry(
                table=str(table), path=one.path, version=one.version, offset=0, state="streaming"
            )
            for table, one in self.inputs(cut).items()
        )
        return LedgerRow(
            cut=cut + 1,
            epoch=1,
            lsn=1000 + cut,
            committed_at=None,
            published_at=datetime.now(UTC),
            transactions=1,
            tables=tuple(entries),
        )

    def _commit(self, name: str, change: Change) -> int:
        committer = Committer(self.path(name))
        table = committer.open()
        wanted = arrow_schema(table.metadata)
        rows = _with_offset(change.added).select(wanted.names).cast(wanted)
        version = committer.commit(
            rows.combine_chunks(), self._places(name, change.gone), _POSITION
        )
        if change.added.num_rows:
            (new,) = set(committer.open().files) - set(table.files)
            self._paths[name].append(new)
            self._first[name].append(self._first[name][-1] + change.added.num_rows)
        return version

    def _places(self, name: str, numbers: Numbers) -> dict[str, list[int]]:
        """Return the row numbers, by file, of the rows with these numbers in the table."""
        first = np.array(self._first[name])
        files = np.searchsorted(first, numbers, side="right") - 1
        return {
            self._paths[name][n]: (numbers[files == n] - first[n]).tolist()
            for n in np.unique(files).tolist()
        }


def _field(one: pa.Field) -> dict[str, object]:
    kind = one.type
    name = f"decimal({kind.precision},{kind.scale})" if pa.types.is_decimal(kind) else _TYPES[kind]
    return {"name": one.name, "type": name, "nullable": True, "metadata": {}}


def _with_offset(rows: pa.Table) -> pa.Table:
    return rows.append_column(_OFFSET, pa.array(np.ones(rows.num_rows, dtype=np.int64)))
