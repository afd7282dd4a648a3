"""Access a Postgres with event triggers, their notes, and its rows."""

from dataclasses import dataclass
from typing import Any, Final

from cdc.events.structure.derive_steps import derive_course
from cdc.events.structure.steps import Course, Note
from cdc.events.structure.structure import Structure, parse, unpublished_from
from cdc.source.notes.structure_table import UNNOTED
from cdc.source.notes.triggers import structure_of
from cdc.source.server.connection import Connection
from tests.source.lake_rows import LakeRows, lake_value

PUBLICATION: Final = "wal2lake"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Holds a row of ``wal2lake.structure``."""

    command: str
    rewrite: int
    converted: bool
    oid: int
    name: str | None
    text: str | None

    @property
    def note(self) -> Note:
        """Return the note as the job reads it."""
        structure = None if self.text is None else parse(self.text)
        return Note(
            structure=structure,
            rewrite=self.rewrite,
            converted=self.converted,
            unpublished=self.text is not None and unpublished_from(self.text) == PUBLICATION,
            unnoted=self.command == UNNOTED,
        )


@dataclass
class Source:
    """One schema of a Postgres that has the event triggers."""

    connection: Connection
    schema: str
    seen: int = 0

    def run(self, statement: str, *values: object) -> list[Noted]:
        """Run a statement and return the notes that it wrote about tables of the schema."""
        self.connection.execute(statement.encode(), values or None)
        return self.notes()

    def notes(self) -> list[Noted]:
        """Return the new notes about tables of the schema, and those of failures."""
        return self._notes("table_schema = %s OR table_oid = 0", self.schema)

    def notes_about(self, table: Structure) -> list[Noted]:
        """Return the new notes that the job would assign to the table, by its OID or its name."""
        name = table.table
        about = "table_oid = %s OR (table_schema, table_name) = (%s, %s)"
        return self._notes(about, table.oid, name.schema, name.name)

    def _notes(self, condition: str, *values: object) -> list[Noted]:
        rows = self.connection.execute(
            "SELECT id, command, rewrite, converted, table_oid, table_name, structure"
            f" FROM wal2lake.structure WHERE id > %s AND ({condition}) ORDER BY id".encode(),
            (self.seen, *values),
        ).fetchall()
        self.seen = max((row[0] for row in rows), default=self.seen)
        names = ("command", "rewrite", "converted", "oid", "name", "text")
        return [Noted(**dict(zip(names, row[1:], strict=True))) for row in rows]

    def structure(self, table: str = "t") -> Structure:
        """Return the current structure of a table."""
        row = self.connection.execute("SELECT %s::regclass::oid", (table,)).fetchone()
        assert row is not None
        text = structure_of(self.connection, row[0])
        assert text is not None
        return parse(text)

    def rows(self, structure: Structure) -> list[dict[str, Any]]:
        """Return the table's current rows as the lake would hold them."""
        columns = structure.followed
        shown = "CASE WHEN {0} IS NOT NULL THEN format('%%s', {0}) END"
        listed = ", ".join(shown.format(f'"{column.name}"') for column in columns)
        query = f'SELECT {listed} FROM "{structure.table.schema}"."{structure.table.name}"'
        texts = self.connection.execute(query.encode(), ()).fetchall()
        return [
            {c.name: lake_value(text, c.lake) for c, text in zip(columns, row, strict=True)}
            for row in texts
        ]


def sorted_rows(rows: list[dict[str, Any]]) -> list[str]:
    """Return a comparable form of rows whose order does not matter."""
    return sorted(repr(sorted(row.items())) for row in rows)


def course_of(source: Source, statement: str) -> Course:
    """Run a statement and return the course that its notes give.

    If the table goes on, check that rows and columns end up as Postgres shows them.
    """
    before = source.structure()
    lake = LakeRows(source.rows(before), {c.name: c.lake for c in before.followed})
    course = derive_course(before, [noted.note for noted in source.run(statement)])
    if not course.stops and course.structure is not None:
        for step in course.steps:
            lake.do(step)
        assert sorted_rows(lake.rows) == sorted_rows(source.rows(course.structure))
        now = source.structure(f"{source.schema}.{course.structure.table.name}")
        assert [(c.number, c.name, c.declared) for c in course.structure.columns] == [
            (c.number, c.name, c.declared) for c in now.columns
        ]
    return course
