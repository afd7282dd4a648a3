"""Apply ``source.as_text``: columns to be captured as Postgres prints them."""

from collections.abc import Mapping

from cdc.events.structure.declared import SourceColumn
from cdc.source.server.finding import Finding
from cdc.tables import TableId, names_column

Columns = Mapping[TableId, tuple[SourceColumn, ...]]


def with_text(tables: Columns, patterns: list[str]) -> Columns:
    """Return the columns, with those that match a pattern turned into text where possible."""
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
    """Return a warning for each pattern that has no effect."""
    every = [(table, column) for table, columns in tables.items() for column in columns]
    findings = []
    for pattern in patterns:
        named = [c for table, c in every if names_column(table, c.name, [pattern])]
        if not any(column.can_be_text for column in named):
            why = "names columns that need no text" if named else "matches no captured column"
            findings.append(
                Finding.warning(
                    pattern,
                    f"this pattern in source.as_text {why}",
                    remedy="correct or remove it; it is for numeric, date and timestamp columns",
                )
            )
    return findings
