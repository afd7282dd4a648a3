"""One table of the lake: its events up to a cut become one commit that holds the position."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import structlog
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.table.batch import Batch
from cdc.apply.table.content import Catalogue, Content
from cdc.apply.table.follower import Follower, refuse_unseen
from cdc.apply.table.missing_columns import refuse_lacking
from cdc.apply.table.spark_plans import WHOLE_FILES, suit
from cdc.apply.table.structure_change import Shape
from cdc.apply.table.structure_notes import BoundNote, PlacedNote, place_notes
from cdc.config import Job
from cdc.errors import CdcError, Reason, coded
from cdc.events.schema import (
    TableSchema,
    belongs_to,
)
from cdc.events.structure.steps import READ_AGAIN
from cdc.events.structure.structure import Structure
from cdc.events.values.lsn import NO_LSN
from cdc.failpoints import Failpoint, reach
from cdc.lake.records.ledger import TableEntry
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table.commits import Commits
from cdc.lake.table.engine_refusals import refusal
from cdc.lake.table.merge_plan import BY_OPERATION
from cdc.lake.table.positions import Position
from cdc.lake.upkeep.maintenance import Maintainer
from cdc.tables import SchemaPolicy, TableState

logger = structlog.get_logger(__name__)


class AppliedTable:
    """A table that follows its log.

    One thread at a time applies events to it: that of the rounds, or that of an operation while
    the table is frozen (cdc/apply/rounds/freezer.py). Any thread may read ``content``, which is
    replaced whole, and call ``flag``.
    """

    def __init__(
        self,
        *,
        session: SparkSession,  # its own: the position is set in the session's configuration
        path: str,
        schema: TableSchema,
        position: Position,
        quarantine: Quarantine,
        placeholder: str,
        policy: Job,
        structure: Structure | None = None,
        changes: SchemaPolicy = "evolve",
        catalogue: Catalogue | None = None,
        slot_lsn: int | None = None,
    ) -> None:
        """``catalogue`` is asked where the source notes nothing.

        ``slot_lsn``: no row of the first snapshot is of a later LSN, where that is known.
        """
        self._session = session
        self.path = path
        self._content = Content(schema=schema, position=position, structure=structure)
        self._quarantine = quarantine
        self._placeholder = placeholder
        self._reason = ""
        self._stopped = False
        self._frozen = False
        self._flagged = False
        self._policy = policy
        self._maintainer = Maintainer(path, policy)
        self._commits = Commits(path)
        self._follower = Follower(session, path, changes, catalogue)
        self._slot_lsn = slot_lsn

    @property
    def content(self) -> Content:
        """Schema, structure and position of one moment."""
        return self._content

    @property
    def schema(self) -> TableSchema:
        """The columns and the key of the lake's table."""
        return self._content.schema

    @property
    def structure(self) -> Structure | None:
        """The source's structure that the columns follow; None where it is not known."""
        return self._content.structure

    @property
    def position(self) -> Position:
        """Up to where events are applied."""
        return self._content.position

    @property
    def following(self) -> bool:
        """Whether rounds bring the table to the next cut."""
        return not (self._stopped or self._frozen)

    @property
    def frozen(self) -> bool:
        """Whether it waits at its position while an operation has it."""
        return self._frozen

    @property
    def stopped(self) -> bool:
        """Whether it follows no more, for a reason of its own."""
        return self._stopped

    @property
    def reason(self) -> str:
        """The reason why it stopped, with the remedy; empty while it follows."""
        return self._reason

    def beside(self, session: SparkSession, path: str, shape: Shape) -> "AppliedTable":
        """Return a table of the same source and policies, at another path and position."""
        return AppliedTable(
            session=session,
            path=path,
            schema=shape.schema,
            position=shape.position,
            quarantine=self._quarantine,
            placeholder=self._placeholder,
            policy=self._policy,
            structure=shape.structure,
            changes=self._follower.policy,
            catalogue=self._follower.catalogue,
            slot_lsn=self._slot_lsn,
        )

    def stop(self, reason: str, *, remedy: str, code: Reason | None = None) -> None:
        """Stop following; the other tables go on, and the ledger has the reason."""
        self._stopped = True
        self._reason = f"{coded(code, reason)}; remedy: {remedy}"
        logger.error("table stopped", table=str(self.schema.table), reason=self._reason)

    def flag(self) -> None:
        """Mark it in the ledger as being read again, frozen already or not."""
        self._flagged = True

    def freeze(self) -> None:
        """Leave it at its position, to an operation; called between two rounds."""
        self._frozen = True

    def thaw(self) -> None:
        """Give it back to the rounds, unflagged; called between two rounds."""
        self._frozen = self._flagged = False

    def again(self) -> None:
        """Follow again from where it stopped."""
        self._stopped, self._reason = False, ""

    def recount(self, refused: int) -> None:
        """Take over how many of its events are open in quarantine."""
        self.move(replace(self.position, refused=refused))

    def move(self, position: Position) -> None:
        """Take over a position that was committed elsewhere, or needs no commit."""
        self._content = replace(self._content, position=position)

    def become(self, schema: TableSchema, structure: Structure | None, position: Position) -> None:
        """Take over what a reading or a replay has made of the frozen table; it follows again.

        Commits that somebody else had made before are overwritten and no longer count.
        """
        self._content = Content(schema=schema, position=position, structure=structure)
        self._commits.forget()
        self.again()

    def left_at(self, version: int) -> None:
        """Take ``version`` for the last one by this job; later commits are somebody else's."""
        self._commits.seen = version

    def entry(self, offset: int, *, streaming: bool) -> TableEntry:
        """Return the table's part of the ledger's row for a cut that ends at ``offset``.

        A commit by somebody else stops the table here: no cut holds it unflagged.
        """
        version = self._look()
        return TableEntry(
            table=str(self.schema.table),
            path=self.path,
            version=version,
            offset=offset,
            state=self._state(streaming=streaming).value,
            reason=self._reason,
            rows_applied=self.position.rows_applied,
            refused=self.position.refused,
            reading=self.position.reading,
            **{name: getattr(self.position, name) for name in BY_OPERATION},
        )

    def _look(self) -> int:
        """Return the newest version by this job; -1 where none is known."""
        try:
            return self._commits.version()
        except CdcError as error:
            if not self._stopped:
                name = self.schema.table
                remedy = f"wal2lake replay {name}, or wal2lake resnapshot {name}"
                self.stop(error.message, remedy=remedy, code=error.reason)
            return -1 if self._commits.seen is None else self._commits.seen

    def _state(self, *, streaming: bool) -> TableState:
        if self._flagged:
            return TableState.RESNAPSHOTTING
        if self._stopped:
            return TableState.STOPPED
        if self.position.refused:
            return TableState.DEGRADED
        return TableState.STREAMING if streaming else TableState.SNAPSHOTTING

    def apply(
        self,
        rows: DataFrame,
        *,
        topic: str,
        upto: int,
        schemas: Mapping[int, str],
        notes: Sequence[BoundNote] = (),
        beyond: bool = False,
        snapshot_end: int | None = 0,
    ) -> None:
        """Bring the table to offset ``upto`` from rows of the log; stop it if that fails.

        ``notes`` are the changes of its structure before ``upto`` (``bound``); ``beyond``: events
        behind ``upto`` may have been written by some of the schemas; ``snapshot_end``: a place in
        the WAL not before the end of the first snapshot, None where it is not known. An error that
        is not the table's own (the disk, the session) is raised.
        """
        self._look()
        if self._stopped:
            return
        mine = rows.where(F.col("topic") == topic)
        try:
            waiting = list(notes)
            refuse_unseen(self._content, waiting, snapshot_end)
            while waiting:
                self._events(mine, topic, waiting[0].after, schemas, some=True)
                self._content, followed = self._follower.by_notes(self._content, waiting)
                waiting = waiting[followed:]
            # Of several schemas some may be of events that it has, or that are behind ``upto``.
            some = beyond or bool(notes) or len(schemas) > 1
            self._events(mine, topic, upto, schemas, some=some)
            suit(self._session, WHOLE_FILES)
            self._maintainer.committed(self._session, self.position.metadata())
        except CdcError as error:
            self.stop(error.message, remedy=error.remedy, code=error.reason)
        except (AnalysisException, Py4JJavaError) as error:
            if (condition := refusal(error)) is None:
                raise
            logger.exception("refused by the engine", table=str(self.schema.table))
            self.stop(
                f"the lake's table refused the change: {condition}",
                remedy=f"see the job's log; then {READ_AGAIN}",
            )

    def pending(self, notes: Iterable[PlacedNote]) -> list[PlacedNote]:
        """Return the notes about this table that it has not followed yet."""
        if self.structure is None:
            return []
        oid, table = self.structure.oid, self.schema.table
        return [
            n for n in notes if n.id > self.position.note and (n.oid == oid or n.table == table)
        ]

    def bound(
        self, notes: Iterable[PlacedNote], mine: DataFrame, schemas: Mapping[int, str]
    ) -> list[BoundNote]:
        """Place the notes that it has not followed among its events in rows of the log."""
        waiting = self.pending(notes)
        beyond = mine.where(F.col("offset") > self.position.offset)
        return place_notes(waiting, beyond, schemas, before=self.position.offset) if waiting else []

    def _events(
        self,
        mine: DataFrame,
        topic: str,
        upto: int,
        schemas: Mapping[int, str],
        *,
        some: bool,
    ) -> None:
        """Apply events up to an offset; with ``some``, only some of the schemas may be theirs."""
        if upto <= self.position.offset:
            return
        suit(self._session, upto - self.position.offset)
        part = mine.where(F.col("offset").between(self.position.offset + 1, upto))
        if some:
            found = part.select("value_schema_id").distinct().collect()
            schemas = {i: schemas[i] for (i,) in found if i in schemas}
        mine_only = {i: text for i, text in schemas.items() if belongs_to(text, topic)}
        if self.structure is not None and self._follower.catalogue is None:
            refuse_lacking(part, mine_only, self.structure)
        for content in self._follower.by_events(self._content, mine_only.values()):
            self._content = content
        self._commit(part, upto, schemas)

    def read_at(self, lsns: frozenset[int]) -> None:
        """Remember the snapshot whose reads are to be applied; stop for any other snapshot.

        All reads of one snapshot have one LSN (``NO_LSN`` for an incremental one). Those of the
        slot's own snapshot come first, with an LSN not beyond the slot's beginning. For any other
        snapshot, the place of its rows in the topic does not say when they were true:
        docs/decisions/0009-order.md.
        """
        if not lsns:
            return
        known = {self.position.snapshot_lsn} - {None}
        late = not known and self.position.rows_applied > 0
        other = self._slot_lsn is not None and max(lsns) > self._slot_lsn
        if late or other or NO_LSN in lsns or len(lsns | known) > 1:
            self.stop(
                "the connector read it in another snapshot: rows that were deleted may stay in "
                "the lake, and newer ones may be replaced by older",
                remedy=READ_AGAIN,
                code=Reason.SNAPSHOT_REPEATED,
            )
        else:
            self.move(replace(self.position, snapshot_lsn=min(lsns)))

    @property
    def was_read(self) -> bool:
        """Whether the first snapshot brought a row of it, or it was read since."""
        return self._content.was_read

    def _commit(self, mine: DataFrame, upto: int, schemas: Mapping[int, str]) -> None:
        batch = Batch(
            session=self._session,
            path=self.path,
            schema=self.schema,
            position=self.position,
            placeholder=self._placeholder,
            quarantine=self._quarantine,
            policy=self._policy,
        )
        reach(Failpoint.BEFORE_TABLE_COMMIT)
        self.move(batch.commit(mine, upto, schemas))
        reach(Failpoint.AFTER_TABLE_COMMIT)
