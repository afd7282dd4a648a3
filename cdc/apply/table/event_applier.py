"""Applies a stretch of one table's events, and follows the structure changes among them."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace

from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.batch import by_spark
from cdc.apply.table.cross_check import CrossCheck
from cdc.apply.table.driver_way import DriverWay
from cdc.apply.table.missing_columns import refuse_lacking
from cdc.apply.table.spark_plans import suit
from cdc.apply.table.structure_follower import StructureFollower, refuse_unseen
from cdc.apply.table.structure_notes import BoundNote
from cdc.apply.table.table_content import TableContent
from cdc.events.schema import belongs_to
from cdc.failpoints import Failpoint, reach
from cdc.lake.own_session import OwnSession
from cdc.lake.table.positions import Position
from cdc.land.log_rows import LogRows

Steps = Generator[TableContent, None, TableContent]
"""The table after each commit; returns what it is at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Holds rows of the log, and the offset in one topic up to which they are to be applied.

    ``notes`` are the changes of the table's structure before ``upto``
    (cdc/apply/table/structure_notes.py). ``beyond``: events behind ``upto`` may have been written
    by some of the schemas. ``snapshot_end``: a place in the WAL not before the end of the first
    snapshot, None where it is not known.
    """

    rows: LogRows
    topic: str  # rows of other topics are passed over
    upto: int
    schemas: Mapping[int, str]  # writer schemas by id
    notes: Sequence[BoundNote] = ()
    beyond: bool = False
    snapshot_end: int | None = 0

    @property
    def has_other_schemas(self) -> bool:
        """Return whether some schemas may be of events that are applied already, or beyond."""
        return self.beyond or bool(self.notes) or len(self.schemas) > 1

    @property
    def mine(self) -> LogRows:
        """Return the rows of the topic."""
        return self.rows.of_topic(self.topic)

    def between(self, after: int, upto: int) -> LogRows:
        """Return the topic's rows beyond one offset, up to another."""
        return self.mine.between(after, upto)


@dataclass(frozen=True, slots=True)
class EventApplier:
    """Commits events to the Delta table at ``path``; keeps no state between two calls."""

    session: OwnSession  # the table's own: the position is set in its configuration
    path: str
    context: ApplyContext
    follower: StructureFollower
    driver: DriverWay | None = None  # None: Spark applies every batch
    check: CrossCheck | None = None  # None: no batch is applied both ways

    def steps(self, content: TableContent, stretch: Stretch) -> Steps:
        """Bring a table from ``content`` to the end of the stretch.

        Raises TABLE_STOPPED where it cannot go on; what was yielded before is committed.
        """
        waiting = list(stretch.notes)
        refuse_unseen(content, waiting, stretch.snapshot_end)
        while waiting:
            content = yield from self._events(content, stretch, waiting[0].after, some=True)
            content, followed = self.follower.by_notes(content, waiting)
            yield content
            waiting = waiting[followed:]
        return (
            yield from self._events(content, stretch, stretch.upto, some=stretch.has_other_schemas)
        )

    def _events(self, content: TableContent, stretch: Stretch, upto: int, *, some: bool) -> Steps:
        """Apply events up to an offset; with ``some``, only some of the schemas may be theirs."""
        after = content.position.offset
        if upto <= after:
            return content
        part, schemas = stretch.between(after, upto), stretch.schemas
        if some:
            schemas = {i: schemas[i] for i in _schema_ids(part) if i in schemas}
        own = {i: text for i, text in schemas.items() if belongs_to(text, stretch.topic)}
        if content.structure is not None and self.context.catalogue is None:
            refuse_lacking(part, own, content.structure)
        for changed in self.follower.by_events(content, own.values()):
            content = changed
            yield content
        return (yield from self._commit(content, part, upto, schemas))

    def _commit(
        self, content: TableContent, part: LogRows, upto: int, schemas: Mapping[int, str]
    ) -> Steps:
        reach(Failpoint.BEFORE_TABLE_COMMIT)
        made = self.driver.applied(content, part, upto, schemas) if self.driver else None
        position = made.position if made else self._by_spark(content, part, upto, schemas)
        after = replace(content, position=position)
        yield after
        if made and self.check is not None and self.check.is_due():
            self.check.compare(content, part, made, schemas)
        reach(Failpoint.AFTER_TABLE_COMMIT)
        return after

    def _by_spark(
        self, content: TableContent, part: LogRows, upto: int, schemas: Mapping[int, str]
    ) -> Position:
        session = self.session.get()
        suit(session, upto - content.position.offset)
        batch = by_spark(session, self.path, content, self.context)
        return batch.commit(part.frame(), upto, schemas)


def _schema_ids(part: LogRows) -> set[int]:
    if part.events is not None:
        found = part.events["value_schema_id"].unique().to_pylist()
    else:
        rows = part.frame().select("value_schema_id").distinct().collect()
        found = [row[0] for row in rows]
    return {number for number in found if number is not None}
