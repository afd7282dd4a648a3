"""Follows changes of the source's structure: by its notes, or by what the events themselves say."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cdc.apply.table.structure_change import Shape, course_of, take_steps
from cdc.apply.table.structure_notes import BoundNote
from cdc.apply.table.table_content import Catalogue, TableContent
from cdc.config import NO_MASKS, Masks
from cdc.errors import CdcError, ErrorKind, Reason
from cdc.events.names import column_refusals
from cdc.events.schema import (
    Column,
    Incompatible,
    TableSchema,
    Unchanged,
    diff,
    table_schema_from_avro,
)
from cdc.events.structure.guess import guess_course
from cdc.events.structure.masked import masked
from cdc.events.structure.steps import READ_AGAIN, Course
from cdc.lake.alter import evolve
from cdc.lake.own_session import OwnSession
from cdc.tables import SchemaPolicy

_REWRITTEN: Final = (
    "it was rewritten while the first snapshot was read: rows that it had before, if any, are not "
    "in it"
)


@dataclass(frozen=True, slots=True)
class StructureFollower:
    """Brings one Delta table to another structure; returns what the table is afterwards."""

    session: OwnSession  # the table's own
    path: str
    policy: SchemaPolicy
    catalogue: Catalogue | None  # asked where the source notes nothing
    masks: Masks = NO_MASKS

    def by_notes(
        self, content: TableContent, notes: Sequence[BoundNote]
    ) -> tuple[TableContent, int]:
        """Follow the first note, with as many more as it needs; return how many these were.

        Raises TABLE_STOPPED for a change that cannot be followed.
        """
        if (shape := shape_of(content)) is None:
            return content, len(notes)
        course, number = course_of(shape, [self._masked(note) for note in notes], self.policy)
        return self._take(shape, course, notes[number - 1].id), number

    def _masked(self, bound: BoundNote) -> BoundNote:
        """Return the note with the masks of its columns, of which the source knows nothing."""
        if bound.note is None or bound.note.structure is None:
            return bound
        structure = masked(bound.note.structure, self.masks)
        return replace(bound, note=replace(bound.note, structure=structure))

    def by_events(self, content: TableContent, written_by: Iterable[str]) -> Iterator[TableContent]:
        """Follow writer schemas that differ; yield the table after each, committed already.

        Notes, where there are any, came before them. Raises TABLE_STOPPED for a schema that does
        not go with the table.
        """
        for text in written_by:
            schema = content.schema
            written = table_schema_from_avro(
                text,
                table=schema.table,
                key=schema.key,
                mode=schema.mode,
                as_text=schema.as_text,
            )
            content = self._by_schema(content, written)
            yield content

    def _by_schema(self, content: TableContent, written: TableSchema) -> TableContent:
        difference, shape = diff(content.schema, written), shape_of(content)
        if isinstance(difference, Unchanged):
            return content
        if shape is not None and self.catalogue is not None:
            now = self.catalogue(shape.structure.oid)
            now = now and masked(now, self.masks)
            course = guess_course(
                shape.structure, written.columns, now, policy=self.policy, append=shape.append
            )
            return self._take(shape, course, content.position.note)
        if isinstance(difference, Incompatible):
            raise CdcError(ErrorKind.TABLE_STOPPED, difference.reason, remedy=READ_AGAIN)
        return self._with(content, difference.columns)

    def _with(self, content: TableContent, columns: Sequence[Column]) -> TableContent:
        """Add the columns that no note tells of."""
        structure, schema = content.structure, content.schema
        noted = {column.name for column in structure.columns} if structure else set()
        added = tuple(column for column in columns if column.name not in noted)
        if not added:
            return content
        refuse_names(schema, added)
        evolve.add_columns(self.session, self.path, added, content.position.metadata())
        return replace(content, schema=replace(schema, columns=schema.columns + added))

    def _take(self, shape: Shape, course: Course, note: int) -> TableContent:
        after = take_steps(self.session, self.path, shape, course, note)
        return TableContent(schema=after.schema, position=after.position, structure=after.structure)


def shape_of(content: TableContent) -> Shape | None:
    """Return the table's shape; None where nothing is known of the source's structure."""
    if content.structure is None:
        return None
    return Shape(schema=content.schema, structure=content.structure, position=content.position)


def refuse_names(schema: TableSchema, added: Sequence[Column]) -> None:
    """Raise TABLE_STOPPED for new columns whose names cannot be kept."""
    names = [*schema.names, *(column.name for column in added)]
    for refusal in column_refusals(schema.table, names):
        raise CdcError(
            ErrorKind.TABLE_STOPPED, refusal.reason, remedy=f"{refusal.remedy}, then {READ_AGAIN}"
        )


def refuse_unseen(
    content: TableContent, notes: Iterable[BoundNote], snapshot_end: int | None
) -> None:
    """Raise TABLE_STOPPED for a table rewritten under the first snapshot, which saw no row of it.

    Whether it had rows then cannot be told from the snapshot.
    """
    if content.was_read or not any(note.rewrites_before(snapshot_end) for note in notes):
        return
    raise CdcError(
        ErrorKind.TABLE_STOPPED, _REWRITTEN, remedy=READ_AGAIN, reason=Reason.SNAPSHOT_BLIND
    )
