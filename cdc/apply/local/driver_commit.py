"""Applies a small batch of one table from this process: no Spark, one commit, milliseconds.

The steps are those of ``cdc.apply.table.batch``: refused events go to quarantine first, then rows
and position go into the table in one commit.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyroaring import BitMap64

from cdc.apply.local.batch import LocalBatch, Outcome
from cdc.apply.local.decode import TableDecoder
from cdc.apply.local.not_local import NotLocalError
from cdc.apply.local.places import RowPlaces, VersionPlaces, identity
from cdc.apply.local.quarantine import refuse
from cdc.apply.local.table_rows import TableRows
from cdc.config import Job
from cdc.events.schema import TableSchema
from cdc.lake.commit.committer import Committer, OpenTable
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.commit.newest_offset import NewestOffsets
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.key_index.refused import IndexRefusedError
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table.merge_plan import OFFSET
from cdc.lake.table.positions import Position
from cdc.observe.stage_times import Stage, StageTimes

MOST_EMPTIED: Final = 1_000_000
"""Rows of a table that a TRUNCATE may empty here; a larger one is overwritten by Spark."""
Rows = Mapping[str, Sequence[int]]
"""Row numbers by data file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverSettings:
    """Holds what the tables of one lake share when this process commits to them."""

    index_directory: Path  # each table has a directory of its own in it
    index_bytes: int  # of memory, for one table
    stages: StageTimes
    executor: Executor  # does what no commit waits for: one small file of several, checkpoints
    check_directory: Path  # where results of both ways are kept that differ


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverBatch:
    """Holds a table's schema and position before the commit, and its events in memory.

    ``events`` are rows of the log, all of the table's topic; ``schemas`` their writer schemas by
    id; ``upto`` is the offset that the table has reached with them.
    """

    schema: TableSchema
    position: Position
    events: pa.Table
    upto: int
    schemas: Mapping[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Says what a batch became: the table's version and position, and why events were refused."""

    version: int
    position: Position
    refused: Mapping[int, str]  # reasons by offset


class DriverCommit:
    """Commits batches to the table at ``path``; used by one thread at a time."""

    def __init__(
        self,
        path: str,
        name: str,
        settings: DriverSettings,
        *,
        quarantine: Quarantine,
        placeholder: str,
        policy: Job,
    ) -> None:
        """Take the table's name, which tells its index from those of others.

        ``placeholder`` is what the connector sends for a large value that did not change.
        """
        self._path = path
        self._stages = settings.stages
        self._quarantine, self._placeholder, self._policy = quarantine, placeholder, policy
        self._places = RowPlaces(path, settings.index_directory / name, settings.index_bytes)
        self._offsets = NewestOffsets(path)
        self._committer: Committer | None = None
        self._decoder: tuple[TableSchema, frozenset[int], TableDecoder] | None = None

    @property
    def committer(self) -> Committer:
        """Return what commits to the table."""
        self._committer = self._committer or Committer(self._path)
        return self._committer

    def commit(self, batch: DriverBatch) -> Committed:
        """Apply a batch in one commit.

        Raises NotLocalError, before anything is in the table, if only Spark can apply the batch;
        TABLE_STOPPED, before anything is written, if too many events are refused; CONFLICT if
        another commit came between.
        """
        try:
            return self._commit(batch, self.committer)
        except (TakeMergeError, IndexRefusedError) as error:
            raise NotLocalError(str(error)) from None

    def _commit(self, batch: DriverBatch, committer: Committer) -> Committed:
        table = committer.open()
        places = self._places.at(batch.schema, table, committer.deleted_rows)
        outcome = LocalBatch(
            schema=batch.schema,
            position=batch.position,
            decoder=self._decoder_of(batch),
            lake=TableRows(self._path, places),
            policy=self._policy,
            stages=self._stages,
        ).outcome(batch.events, batch.upto)
        with self._stages.timed(Stage.COMMIT):
            rows = _stored(outcome.upserts, table)
            if outcome.truncated:
                old = _all_rows(table, committer)
            else:
                self._refuse_newer(table, places.physical(OFFSET), batch.position)
                old = _old_rows(outcome, places) if table.files else {}
            outcome = refuse(batch.events, outcome, batch.schema.table, self._quarantine)
            version = committer.commit(rows, old, outcome.position)
        reasons = dict(zip(*outcome.refused.to_pydict().values(), strict=True))
        return Committed(version=version, position=outcome.position, refused=reasons)

    def _decoder_of(self, batch: DriverBatch) -> TableDecoder:
        """Return the decoder of the batch; the one of the last batch is kept."""
        known, schema, ids = self._decoder, batch.schema, frozenset(batch.schemas)
        if known is None or known[:2] != (schema, ids):
            decoder = TableDecoder(batch.schemas, schema, placeholder=self._placeholder)
            known = self._decoder = schema, ids, decoder
        return known[2]

    def _refuse_newer(self, table: OpenTable, column: str, position: Position) -> None:
        """Refuse a table with a row of an event beyond its position: a MERGE leaves it alone.

        ``column`` has the offsets, by its name in data files.
        """
        self._offsets.forget_all_but(frozenset(table.files))
        for file in table.files.values():
            newest = self._offsets.of(file, column)
            if newest is None or newest > position.offset:
                raise TakeMergeError("it has a file whose events are not known to be older")


def _stored(rows: pa.Table, table: OpenTable) -> pa.Table:
    """Return rows as the Delta table has them. Raises TakeMergeError if it has other columns."""
    wanted = arrow_schema(table.metadata)
    if set(wanted.names) != set(rows.schema.names):
        raise TakeMergeError("its columns are not the ones that its events have")
    return rows.select(wanted.names).cast(wanted)


def _old_rows(outcome: Outcome, places: VersionPlaces) -> Rows:
    """Return the rows that the batch replaces or deletes."""
    names = list(identity(places.schema))
    if not names:
        return {}
    keys = [rows.select(names) for rows in (outcome.upserts, outcome.deletes)]
    found = places.look_up(pa.concat_tables(keys))
    return {path: rows.tolist() for path, rows in found.rows_by_file().items()}


def _all_rows(table: OpenTable, committer: Committer) -> Rows:
    if sum(file.records for file in table.files.values()) > MOST_EMPTIED:
        raise TakeMergeError("it was truncated and is large")
    return {
        path: list(BitMap64(range(file.records)) - committer.deleted_rows(file))
        for path, file in table.files.items()
    }
