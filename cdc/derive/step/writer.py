"""Commits differences to a derived table, each with its mark, at a cost that follows the rows.

Rows that are gone are marked as deleted, as in captured tables: where they are, the index of
digests and copies tells. Files are kept few and small by the same thread after a commit, each time
by a bounded work.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from cdc.apply.local.places import RowPlaces, live_file
from cdc.derive.engine.output_types import Output, lake_field
from cdc.derive.step.difference import GONE
from cdc.derive.step.mark import Mark
from cdc.derive.step.upkeep import keep_small, kept_properties
from cdc.failpoints import Failpoint, reach
from cdc.lake.commit.committer import Committer, OpenTable
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.replay import LiveFile
from cdc.lake.create.whole_table import replace_table
from cdc.lake.key_index.key_columns import KeyColumn
from cdc.lake.key_index.refused import IndexRefusedError
from cdc.lake.table.deletion import delete_table
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.lake.table.positions import MEASURED_PROPERTY, open_table

_INDEX_BYTES: Final = 32 << 20
"""Of memory for the index of one table; more is mapped from files."""
_MEASURED: Final = 32
"""So many columns, from the first, have statistics, as in any Delta table."""
_OWN: Final = (Output(ROW_HASH, "VARCHAR"), Output(COPY, "BIGINT"))


class UnwritableError(Exception):
    """Says why no difference can be committed to a table, which has to be made anew."""


@dataclass(slots=True)
class TableWriter:
    """Commits to the table at ``path``; used by one thread.

    ``directory`` belongs to this table alone, and may be deleted at any moment.
    """

    path: str
    directory: Path
    _places: RowPlaces = field(init=False)
    _committer: Committer | None = None
    _opened: DeltaTable | None = None

    def __post_init__(self) -> None:
        self._places = RowPlaces(self.path, self.directory, _INDEX_BYTES)

    @property
    def committer(self) -> Committer:
        """Return what commits to the table."""
        self._committer = self._committer or Committer(self.path)
        return self._committer

    def opened(self, newest: int | None = None) -> DeltaTable | None:
        """Return the table at its newest version, which may be known; None if there is none.

        The next call, or the next commit, brings what it returns to a newer version.
        """
        if self._opened is None or self._opened.version() != newest:
            self._bring_on()
        if self._opened is None:
            self._opened = open_table(self.path)
        return self._opened

    def _bring_on(self) -> None:
        """Bring what is open to the newest version, or give it up."""
        try:
            if self._opened is not None:
                self._opened.update_incremental()
        except DeltaError:
            self._opened = None  # its log was cleaned, or it was made anew

    def clear(self) -> None:
        """Delete the whole table, whose log cannot be continued."""
        self._committer = self._opened = None
        reach(Failpoint.BEFORE_DERIVED_CLEAR)
        delete_table(self.path)
        reach(Failpoint.AFTER_DERIVED_CLEAR)

    def write(
        self, stored: DeltaTable | None, changes: pa.Table, mark: Mark, kept_hours: int
    ) -> int:
        """Commit a difference, do what upkeep is due, and return the newest version.

        Without a ``stored`` table the added rows become the whole table. Raises as ``commit``.
        """
        if stored is None:
            version = self.replace(changes, mark, kept_hours)
        else:
            version = self.commit(changes, mark, stored.version())
        version = keep_small(self.committer, self.path, version - 1, mark, kept_hours)
        self._bring_on()  # here, beside the next table, and not when the next step begins
        return version

    def replace(self, changes: pa.Table, mark: Mark, kept_hours: int) -> int:
        """Make the added rows the whole table, whatever is at the path; return the version."""
        outputs = [Output(name, kind) for name, kind in mark.columns.items()]
        fields = [lake_field(output) for output in (*outputs, *_OWN)]
        properties = _properties(outputs, kept_hours)
        with _committing():
            return replace_table(self.path, fields, properties, _added(changes), mark.metadata())

    def commit(self, changes: pa.Table, mark: Mark, since: int) -> int:
        """Add and remove the rows of a difference in one commit; return the version.

        ``since`` is the version from which the table differs so. Raises UnwritableError, and the
        table stays as it is, if it is at another version, lacks a row that is to go, or was not
        made by this writer, and CONFLICT if another commit came between.
        """
        with _committing():
            return self._commit(changes, mark, since)

    def rows(self) -> int:
        """Return how many rows the newest version has. Raises UnwritableError as ``commit``."""
        with _translated():
            return sum(map(_left, self.committer.open().files.values()))

    def _commit(self, changes: pa.Table, mark: Mark, since: int) -> int:
        table = self.committer.open()
        if table.version != since:
            raise UnwritableError(f"it is at version {table.version}, but was at {since}")
        gone = changes.filter(changes.column(GONE)).select([ROW_HASH, COPY])
        wanted = arrow_schema(table.metadata)
        added = _added(changes).select(wanted.names).cast(wanted)
        return self.committer.commit(added, self._rows_of(table, gone), mark)

    def _rows_of(self, table: OpenTable, gone: pa.Table) -> Mapping[str, Sequence[int]]:
        """Return the row numbers, by file, of the rows with these digests and copies."""
        files = [live_file(f, self.committer.deleted_rows(f)) for f in table.files.values()]
        index = self._places.index(_key(table))
        index.keep_only(each.file for each in files)
        if not gone.num_rows:
            return {}
        found = index.look_up(gone, files)
        if np.any(found.file < 0):
            raise UnwritableError("it lacks rows that it is to have")
        return {path: rows.tolist() for path, rows in found.rows_by_file().items()}


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (TakeMergeError, IndexRefusedError) as error:
        raise UnwritableError(str(error)) from None


@contextmanager
def _committing() -> Iterator[None]:
    reach(Failpoint.BEFORE_DERIVED_COMMIT)
    with _translated():
        yield
    reach(Failpoint.AFTER_DERIVED_COMMIT)


def _properties(outputs: Sequence[Output], kept_hours: int) -> dict[str, str]:
    return {
        **kept_properties(kept_hours),
        "delta.enableDeletionVectors": "true",
        "delta.columnMapping.mode": "name",
        "delta.enableExpiredLogCleanup": "false",  # upkeep does it, by which versions are needed
        MEASURED_PROPERTY: json.dumps([output.name for output in outputs[:_MEASURED]]),
    }


def _key(table: OpenTable) -> tuple[KeyColumn, ...]:
    stored = {column.name: column.physical for column in table.metadata.columns}
    types = {ROW_HASH: "string", COPY: "bigint"}
    if not types.keys() <= stored.keys():
        raise UnwritableError("it has no digests of its rows")
    return tuple(KeyColumn(name, stored[name], kind) for name, kind in types.items())


def _added(changes: pa.Table) -> pa.Table:
    return changes.filter(pc.invert(changes.column(GONE))).drop_columns([GONE])


def _left(file: LiveFile) -> int:
    return file.records - (file.vector.cardinality if file.vector else 0)
