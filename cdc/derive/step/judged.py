"""Asks a query what its rows are where the watermark of its late rows is known."""

from collections.abc import Mapping

from deltalake import DeltaTable

from cdc.derive.definition.definition import Definition
from cdc.derive.late.shown import shown
from cdc.derive.step.mark import mark_facts
from cdc.tables import TableId


def watermark_at(definition: Definition, opened: Mapping[TableId, DeltaTable]) -> int | None:
    """Return the watermark that the opened table of late rows has; None if there is none yet."""
    if definition.late is None:
        return None
    watermark: int | None = mark_facts(opened[definition.late.rows])["late"]["watermark"]
    return watermark


def query_at(
    definition: Definition, opened: Mapping[TableId, DeltaTable], query: str | None = None
) -> str:
    """Return the definition's query for DuckDB, or another form of it, at the opened inputs."""
    text = definition.duckdb if query is None else query
    if definition.late is None:
        return text
    return shown(definition.late, text, watermark_at(definition, opened))
