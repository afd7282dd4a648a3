"""Carries out a change of a table's structure, step by step and over restarts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import structlog

from cdc.apply.table.structure_notes import BoundNote
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.events.structure.derive_steps import derive_course
from cdc.events.structure.steps import (
    READ_AGAIN,
    ChangeKey,
    ChangeMode,
    Course,
    DropTable,
    Note,
    RenameTable,
    Stop,
)
from cdc.events.structure.structure import Structure
from cdc.failpoints import Failpoint, reach
from cdc.lake.alter import evolve
from cdc.lake.alter.alter import alter
from cdc.lake.commit.alteration import SetProperties
from cdc.lake.own_session import AnySession
from cdc.lake.table import store
from cdc.lake.table.positions import Position
from cdc.tables import SchemaPolicy, TableMode

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Holds a table's schema, the source's structure that it follows, and its position."""

    schema: TableSchema
    structure: Structure
    position: Position

    @property
    def append(self) -> bool:
        """Return whether the table keeps inserts only."""
        return self.schema.mode is TableMode.APPEND


def course_of(
    shape: Shape, waiting: Sequence[BoundNote], policy: SchemaPolicy
) -> tuple[Course, int]:
    """Return what the first note asks of the table, and how many notes that takes.

    A change that stops the table may be undone by a later note, for example a key that is given
    back: with no event in between, the table never had the state in between. Raises TABLE_STOPPED
    for a note without a description.
    """
    together = [bound.note for bound in waiting if bound.after == waiting[0].after]
    notes: list[Note] = []
    for note in together:
        if note is None:
            break
        notes.append(note)
        course = derive_course(shape.structure, notes, policy=policy, append=shape.append)
        if not _stops(course):
            return course, len(notes)
    if not notes:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            "its structure changed, and the source could not describe the change",
            remedy=f"see the warning in the source's log; then {READ_AGAIN}",
        )
    return derive_course(shape.structure, notes, policy=policy, append=shape.append), len(notes)


def take_steps(session: AnySession, path: str, shape: Shape, course: Course, note: int) -> Shape:
    """Take the steps of a course and return the shape after them; ``note`` is its last note.

    Every step is a commit that records how many are done. Raises TABLE_STOPPED, with reason and
    remedy, before anything is changed.
    """
    for stop in _stops(course):
        raise CdcError(ErrorKind.TABLE_STOPPED, stop.reason, remedy=stop.remedy)
    schema, position = shape.schema, shape.position
    for number in range(position.steps, len(course.steps)):
        position = replace(position, steps=number + 1)
        step = course.steps[number]
        schema = evolve.take_step(session, path, schema, step, position.metadata())
        logger.info("structure", table=str(schema.table), step=type(step).__name__)
    if any(not isinstance(step, ChangeKey) for step in course.steps):
        evolve.rehash_rows(session, path, schema, position.metadata())
    position = replace(position, note=note, steps=0)
    return _kept(session, path, schema, course, position)


def _stops(course: Course) -> tuple[Stop, ...]:
    return (*course.stops, *_cannot(course))


def _cannot(course: Course) -> Iterator[Stop]:
    """Yield a stop for each step that topics and the connector's list would have to follow too."""
    for step in course.steps:
        match step:
            case DropTable():
                yield Stop(
                    "it was dropped in the source",
                    "take it out of source.tables, or create it again and let it be read again",
                )
            case RenameTable(table):  # later notes tell its name by now
                yield Stop(
                    f"it was renamed to {table} in the source: changes under that name do not"
                    " arrive",
                    f"rename it back unless that is done, or add {table} to source.tables; then"
                    f" {READ_AGAIN}",
                )
            case ChangeMode(mode):
                yield Stop(
                    f"its row identity changed: the table is {mode.value} now",
                    f"restore the key it had; or {READ_AGAIN}",
                )


def _kept(
    session: AnySession, path: str, schema: TableSchema, course: Course, position: Position
) -> Shape:
    if course.structure is None:  # a dropped table has stopped above
        raise CdcError(ErrorKind.INTERNAL, "a course without a structure", remedy="report this")
    follows = SetProperties({store.STRUCTURE_PROPERTY: course.structure.to_text()})
    reach(Failpoint.BEFORE_STRUCTURE_NOTE)
    alter(session, path, follows, position.metadata())
    reach(Failpoint.AFTER_STRUCTURE_NOTE)
    return Shape(schema=schema, structure=course.structure, position=position)
