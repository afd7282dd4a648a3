"""Takes a reading of a small table into the lake's table from this process, in one commit.

``commit.py`` does the same in Spark, with the same durable steps in the same order. What only Spark
can do is left to it before anything is written.
"""

from dataclasses import dataclass, replace

import pyarrow as pa

from cdc.apply.difference.row_difference import KIND
from cdc.apply.local.not_local import NotLocalError
from cdc.errors import CdcError, ErrorKind
from cdc.lake.commit.combined import CombineError
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.create.table import described
from cdc.lake.create.whole_table import replace_table
from cdc.lake.files.store_of import store_of
from cdc.lake.records.quarantine import RefusedEvent
from cdc.lake.table import store
from cdc.lake.table.merge_plan import DELETED
from cdc.lake.table.positions import UNREAD, Position
from cdc.operations.resnapshot.held_rows import HeldRows, held_rows
from cdc.operations.resnapshot.read import refused_rows
from cdc.operations.resnapshot.small_difference import (
    SmallDifference,
    at_offset,
    kept_difference,
    small_difference,
)
from cdc.operations.resnapshot.small_reading import SmallReading
from cdc.operations.resnapshot.writer import Writer
from cdc.state.operation import TableResult
from cdc.tables import TableMode


@dataclass(frozen=True, slots=True)
class SmallWriter(Writer):
    """Takes one reading of one frozen table into the lake; ``session`` only removes files."""

    def in_place(self, reading: SmallReading) -> TableResult:
        """Merge the rows into the table, or replace it, as ``ReadingWriter.in_place`` does.

        Raises NotLocalError, before anything is written, where only Spark can do it; CONFLICT if
        another commit came between.
        """
        self.reporter.tell(phase="comparing")
        committer = Committer(self.live.path)
        held = _held(committer, self.live.path)
        if self.target.same and self.target.schema.mode is not TableMode.APPEND:
            return self._merged(reading, held, committer)
        return self._replaced(reading, held)

    def _merged(self, reading: SmallReading, held: HeldRows, committer: Committer) -> TableResult:
        found = small_difference(reading.rows, held.rows, self.target.schema, reading.keys)
        whole = self.live.stopped or self.live.position.reading == UNREAD
        settled, position = self._begun(reading)
        more = reading.rows_read if whole else sum(found.counts.values())
        position = replace(position, rows_applied=position.rows_applied + more)
        if whole:
            self._keep_whole(reading, position)
        else:
            self._keep_difference(reading, held, found, position)
        new = reading.rows.take(pa.array(found.added + found.changed, pa.int64()))
        rows = at_offset(new, self.target.schema, position.offset)
        counts = found.counts
        with self.result.committing(reading.rows_read, position, settled, counts) as result:
            stored = rows.select(held.rows.column_names).cast(held.rows.schema)
            old = held.places(found.replaced + found.swept)
            with self.result.merging():
                committer.commit(stored, old, position)
            self.live.replace_content(self.content(position))
        return result

    def _replaced(self, reading: SmallReading, held: HeldRows) -> TableResult:
        settled, position = self._begun(reading)
        position = replace(position, rows_applied=position.rows_applied + reading.rows_read)
        self._keep_whole(reading, position)
        note = {"note": f"replaced whole, with {held.rows.num_rows:,} rows before"}
        with self.result.committing(reading.rows_read, position, settled, note) as result:
            with self.result.swapping():
                self._write_whole(self.live.path, reading, position)
            self.live.replace_content(self.content(position))
        return result

    def _begun(self, reading: SmallReading) -> tuple[list[RefusedEvent], Position]:
        """Refuse what the lake cannot hold; return the events that are settled, and the place."""
        table, number = self.live.schema.table, self.subject.number
        texts = [(row.key, row.reason) for row in reading.refused]
        settled, still = self.result.refuse(refused_rows(texts, table, self.result.topic, number))
        return settled, self.result.position(still)

    def _keep_whole(self, reading: SmallReading, position: Position) -> None:
        self.store.keep_whole(position, lambda path: self._write_whole(path, reading, position))

    def _keep_difference(
        self, reading: SmallReading, held: HeldRows, found: SmallDifference, position: Position
    ) -> None:
        schema, path = self.target.schema, self.store.free_path()
        rows = kept_difference(reading.rows, held.rows, schema, found, position.offset)
        fields = described(f"{store.definition(schema)}, {DELETED} BOOLEAN, {KIND} STRING")

        def write(at: str) -> None:
            replace_table(at, fields, store.PROPERTIES, rows, position.metadata())

        self.store.write_difference(path, write)
        self.store.record(position, path, whole=False)

    def _write_whole(self, path: str, reading: SmallReading, position: Position) -> None:
        schema = self.target.schema
        fields = described(store.definition(schema))
        properties = store.properties(schema, self.target.structure)
        rows = at_offset(reading.rows, schema, position.offset)
        replace_table(path, fields, properties, rows, position.metadata())


def _held(committer: Committer, path: str) -> HeldRows:
    try:
        return held_rows(store_of(path), committer.open(), committer.deleted_rows)
    except (TakeMergeError, CombineError) as error:
        raise NotLocalError(str(error)) from None
    except CdcError as error:  # a vector that is gone or damaged
        if error.kind is not ErrorKind.CHAIN_BROKEN:
            raise
        raise NotLocalError(str(error)) from None
