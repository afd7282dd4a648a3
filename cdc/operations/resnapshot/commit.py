"""Takes the rows of a reading into the lake's table, and keeps them beside the log.

The process may die after every durable step: refused rows, the reading, its line in the index, the
note of the result, then the one commit of the table. An operation that is run again begins with a
reading of its own, unless that commit was made.
"""

from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame

from cdc.apply.difference import row_difference
from cdc.apply.difference.merge import merge_difference
from cdc.apply.table.table_content import TableContent
from cdc.lake.layout import broken_path
from cdc.lake.records.quarantine import RefusedEvent
from cdc.lake.table import store
from cdc.lake.table.positions import UNREAD, Position
from cdc.lake.table.removal import remove
from cdc.lake.table.swap import is_readable, swap
from cdc.operations.resnapshot.read import Staged, count_by_kind, refused_events
from cdc.operations.resnapshot.shadow import Shadow
from cdc.operations.resnapshot.writer import Writer
from cdc.state.operation import TableResult
from cdc.tables import TableMode


@dataclass(frozen=True, slots=True)
class ReadingWriter(Writer):
    """Takes one reading of one table into the lake; no other thread may use ``session``."""

    def in_place(self, staged: Staged) -> TableResult:
        """Merge the rows into the frozen table, and return the result.

        A table that was stopped or never read, or has other columns, is not what a replay of its
        log gives: for it the whole reading is kept, for any other table only the difference. A
        table that is gone or cannot be read is replaced.
        """
        settled, refused = self._refusals(staged)
        position = self.result.position(refused)
        self.reporter.tell(phase="comparing")
        merges = self.target.same and self.target.schema.mode is not TableMode.APPEND
        if merges and is_readable(self.session, self.live.path):
            whole = self.live.stopped or self.live.position.reading == UNREAD
            return self._merged(staged, position, settled, whole=whole)
        return self._replaced(staged, position, settled)

    def by_shadow(self, staged: Staged) -> TableResult:
        """Replace the table by a shadow, which catches up while the table goes on."""
        settled, refused = self._refusals(staged)
        position = self.result.position(refused)
        position = replace(position, rows_applied=position.rows_applied + staged.rows_read)
        path = self._keep_whole(staged, position)
        table = self.context.factory.opened(self.session, path, self.content(position))
        shadow = Shadow(self.context, self.session, self.live, table, self.reporter)
        shadow.catch_up()
        counts = shadow.differences()
        with self.result.committing(staged.rows_read, table.position, settled, counts) as result:
            self._swap(table.content)
        return result

    def _merged(
        self, staged: Staged, position: Position, settled: list[RefusedEvent], *, whole: bool
    ) -> TableResult:
        schema, path = self.target.schema, self.store.free_path("difference" if whole else "")
        held = self._held() if staged.part is None else staged.part
        difference = row_difference.unlike(staged.rows, held, schema, position.offset)
        self.store.write_difference(path, partial(_write, difference))
        counts = count_by_kind(self.session, path)
        more = staged.rows_read if whole else sum(counts.values())
        position = replace(position, rows_applied=position.rows_applied + more)
        if whole:
            self._keep_whole(staged, position)
        else:
            self.store.record(position, path, whole=False)
        rows = self.session.read.format("delta").load(path).drop(row_difference.KIND)
        with self.result.committing(staged.rows_read, position, settled, counts) as result:
            with self.result.merging():
                merge_difference(self.session, self.live.path, schema, rows, position)
            self.live.replace_content(self.content(position))
        if whole:
            remove(self.session, path)
        return result

    def _replaced(
        self, staged: Staged, position: Position, settled: list[RefusedEvent]
    ) -> TableResult:
        readable = is_readable(self.session, self.live.path)
        before = f"with {self._held().count():,} rows" if readable else "gone or not readable"
        position = replace(position, rows_applied=position.rows_applied + staged.rows_read)
        self._keep_whole(staged, position)
        note = {"note": f"replaced whole, {before} before"}
        with self.result.committing(staged.rows_read, position, settled, note) as result:
            self._swap(self.content(position))
        return result

    def _keep_whole(self, staged: Staged, position: Position) -> str:
        schema = self.target.schema

        def write(path: str) -> None:
            store.create(self.session, path, schema, position, self.target.structure)
            rows = row_difference.whole_rows(staged.rows, schema, position.offset)
            store.append(path, rows, position)

        return self.store.keep_whole(position, write)

    def _swap(self, content: TableContent) -> None:
        with self.result.swapping():
            swap(
                self.session,
                self.store.path(),
                self.live.path,
                schema=content.schema,
                position=content.position,
                structure=content.structure,
                broken=broken_path(self.context.config, self.operation.id, self.live.schema.table),
                going_on=self.reporter.refuse_ended,
            )
        self.live.replace_content(content)

    def _held(self) -> DataFrame:
        return self.session.read.format("delta").load(self.live.path)

    def _refusals(self, staged: Staged) -> tuple[list[RefusedEvent], int]:
        """Refuse the rows that the lake cannot hold; see ``ReadingResult.refuse``."""
        topic = self.result.topic
        return self.result.refuse(refused_events(staged, self.target, topic, self.subject.number))


def _write(difference: DataFrame, path: str) -> None:
    writer = difference.write.format("delta").option("delta.columnMapping.mode", "name")
    writer.mode("errorifexists").save(path)
