"""Columns that the operator wants as Postgres's own text: ``source.as_text``."""

from collections.abc import Mapping

from cdc.events.structure.declared import SourceColumn
from cdc.source.server.finding import Finding
from cdc.tables import TableId, names_column

Columns = Mapping[TableId, tuple[SourceColumn, ...]]


def with_text(tables: Columns, patterns: list[str]) -> Columns:
    """The columns, those as text that a pattern names and that can be."""
    return {
        table: tuple(
            column.as_text()
            if column.can_be_text and names_column(table, column.name, patterns)
            else column
            for column in columns
        )
        for table, columns in tables.items()
    }


def text_findings(tables: Columns, patterns: list[str]) -> list[Finding]:
    """Patterns that do nothing."""
    every = [(table, column) for table, columns in tables.items() for column in columns]
    found = []
    for pattern in patterns:
        named = [c for table, c in every if names_column(table, c.name, [pattern])]
        if not any(column.can_be_text for column in named):
            said = "has all its values without it" if named else "names no column that is captured"
            found.append(
                Finding.warning(
                    pattern,
                    f"this pattern of source.as_text {said}",
                    remedy="it is for numeric, date and timestamp columns: correct or remove it",
                )
            )
    return found
