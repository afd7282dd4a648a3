"""Applies a table's events up to a cut, in one commit that holds the position."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import structlog
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.cross_check import cross_check
from cdc.apply.table.driver_way import driver_way
from cdc.apply.table.event_applier import EventApplier, Stretch
from cdc.apply.table.spark_plans import WHOLE_FILES, suit
from cdc.apply.table.structure_follower import StructureFollower
from cdc.apply.table.structure_notes import BoundNote, PlacedNote, place_notes
from cdc.apply.table.table_content import TableContent
from cdc.errors import CdcError, Reason, coded
from cdc.events.schema import TableSchema
from cdc.events.structure.steps import READ_AGAIN
from cdc.events.structure.structure import Structure
from cdc.lake.own_session import OwnSession
from cdc.lake.records.ledger import TableEntry
from cdc.lake.table.foreign_commits import ForeignCommitCheck
from cdc.lake.table.merge_plan import BY_OPERATION
from cdc.lake.table.positions import Position
from cdc.lake.table.refused_plans import refused_plan
from cdc.lake.upkeep.maintenance import Maintainer
from cdc.land.log_rows import LogRows
from cdc.tables import TableState

logger = structlog.get_logger(__name__)


class AppliedTable:
    """Makes one table of the lake follow its log.

    One thread at a time applies events to it: that of the rounds, or that of an operation while
    the table is frozen (cdc/apply/rounds/table_freezer.py). Any thread may read ``content``, which
    is replaced whole, and call ``flag``.
    """

    def __init__(
        self, session: OwnSession, path: str, content: TableContent, context: ApplyContext
    ) -> None:
        """Follow from ``content``, which is what the Delta table at ``path`` holds.

        No other table may use ``session``: the position is set in the session's configuration.
        """
        self._session = session
        self.path = path
        self._content = content
        self._reason = ""
        self._stopped = False
        self._frozen = False
        self._flagged = False
        self._unread = False
        self._slot_lsn = context.slot_lsn
        executor = context.driver.executor if context.driver else None
        self._maintainer = Maintainer(path, context.policy, executor=executor)
        self._commit_check = ForeignCommitCheck(path)
        changes = context.schema_policy(content.schema.table)
        follower = StructureFollower(session, path, changes, context.catalogue, context.masks)
        self._driver = driver_way(path, content.schema.table, context, self._maintainer)
        check = cross_check(session, path, content.schema.table, context)
        self._applier = EventApplier(session, path, context, follower, self._driver, check)

    @property
    def content(self) -> TableContent:
        """Return the schema, structure and position of one moment."""
        return self._content

    @property
    def schema(self) -> TableSchema:
        """Return the columns and the key of the lake's table."""
        return self._content.schema

    @property
    def structure(self) -> Structure | None:
        """Return the source's structure that the columns follow; None where it is not known."""
        return self._content.structure

    @property
    def position(self) -> Position:
        """Up to where events are applied."""
        return self._content.position

    @property
    def following(self) -> bool:
        """Return whether rounds bring the table to the next cut."""
        return not (self._stopped or self._frozen)

    @property
    def frozen(self) -> bool:
        """Return whether it waits at its position while an operation has it."""
        return self._frozen

    @property
    def stopped(self) -> bool:
        """Return whether it follows no more, for a reason of its own."""
        return self._stopped

    @property
    def reason(self) -> str:
        """Return the reason why it stopped, with the remedy; empty while it follows."""
        return self._reason

    @property
    def way(self) -> str:
        """Return how its last batch was applied; empty before the first."""
        return self._driver.last if self._driver else ""

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

    def await_first_rows(self) -> None:
        """Leave it empty at the beginning of its topic until an operation has read its rows."""
        self._frozen = self._unread = True

    @property
    def awaits_first_rows(self) -> bool:
        """Return whether no operation has given it back since ``await_first_rows``."""
        return self._unread

    def thaw(self) -> None:
        """Give it back to the rounds, unflagged; called between two rounds."""
        self._frozen = self._flagged = self._unread = False

    def resume(self) -> None:
        """Follow again from where it stopped."""
        self._stopped, self._reason = False, ""

    def recount(self, refused: int) -> None:
        """Take over how many of its events are open in quarantine."""
        self.move(replace(self.position, refused=refused))

    def move(self, position: Position) -> None:
        """Take over a position that was committed elsewhere, or needs no commit."""
        self._content = replace(self._content, position=position)

    def replace_content(self, content: TableContent) -> None:
        """Take over what a reading or a replay has made of the frozen table; it follows again.

        Commits that somebody else had made before are overwritten and no longer count.
        """
        self._content = content
        self._commit_check.forget()
        self.resume()

    def start_at_version(self, version: int, delta_id: str) -> None:
        """Take ``version`` for the last one by this job; later commits are somebody else's."""
        self._commit_check.start_at(version, delta_id)

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
            delta_id=self._commit_check.delta_id,
            **{name: getattr(self.position, name) for name in BY_OPERATION},
        )

    def _look(self) -> int:
        """Return the newest version by this job; -1 where none is known."""
        try:
            return self._commit_check.checked_version()
        except CdcError as error:
            if not self._stopped:
                name = self.schema.table
                remedy = f"wal2lake replay {name}, or wal2lake resnapshot {name}"
                self.stop(error.message, remedy=remedy, code=error.reason)
            seen = self._commit_check.seen
            return -1 if seen is None else seen

    def _state(self, *, streaming: bool) -> TableState:
        if self._flagged:
            return TableState.RESNAPSHOTTING
        if self._stopped:
            return TableState.STOPPED
        if self._unread:
            return TableState.SNAPSHOTTING
        if self.position.refused:
            return TableState.DEGRADED
        return TableState.STREAMING if streaming else TableState.SNAPSHOTTING

    def apply(self, stretch: Stretch) -> None:
        """Bring the table to the end of a stretch of its events; stop it if that fails.

        An error that is not the table's own (the disk, the session) is raised.
        """
        self._look()
        if self._stopped:
            return
        with self._stopping_for_own_errors():
            for content in self._applier.steps(self._content, stretch):
                self._content = content
            self._keep_small()

    def _keep_small(self) -> None:
        if self._driver is not None and self._driver.was_driver:
            self._driver.upkeep.committed(self._session, self.position)
        else:
            session = self._session.get()
            suit(session, WHOLE_FILES)
            self._maintainer.committed(session, self.position.metadata())

    @contextmanager
    def _stopping_for_own_errors(self) -> Iterator[None]:
        try:
            yield
        except CdcError as error:
            self.stop(error.message, remedy=error.remedy, code=error.reason)
        except (AnalysisException, Py4JJavaError) as error:
            if (condition := refused_plan(error)) is None:
                raise
            logger.exception("refused by the engine", table=str(self.schema.table))
            self.stop(
                f"the lake's table refused the change: {condition}",
                remedy=f"see the job's log; then {READ_AGAIN}",
            )

    def pending_notes(self, notes: Iterable[PlacedNote]) -> list[PlacedNote]:
        """Return the notes about this table that it has not followed yet."""
        if self.structure is None:
            return []
        oid, table = self.structure.oid, self.schema.table
        return [
            n for n in notes if n.id > self.position.note and (n.oid == oid or n.table == table)
        ]

    def bind_notes(
        self, notes: Iterable[PlacedNote], mine: LogRows, schemas: Mapping[int, str]
    ) -> list[BoundNote]:
        """Place the notes that it has not followed among its events in rows of the log."""
        waiting = self.pending_notes(notes)
        if not waiting:
            return []
        beyond = mine.frame().where(F.col("offset") > self.position.offset)
        return place_notes(waiting, beyond, schemas, before=self.position.offset)

    def remember_snapshot(self, lsns: frozenset[int]) -> None:
        """Remember the snapshot whose reads are to be applied; stop for any other snapshot.

        For rows of another snapshot, their place in the topic does not say when they were true:
        docs/decisions/0009-order.md.
        """
        if not lsns:
            return
        if self._content.has_other_snapshot(lsns, self._slot_lsn):
            self.stop(
                "the connector read it in another snapshot: rows that were deleted may stay in "
                "the lake, and newer ones may be replaced by older",
                remedy=READ_AGAIN,
                code=Reason.SNAPSHOT_REPEATED,
            )
        else:
            self.move(replace(self.position, snapshot_lsn=min(lsns)))
