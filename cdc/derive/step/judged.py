"""Asks a query what its rows are where the watermark of its late rows is known."""

from collections.abc import Mapping

from deltalake import DeltaTable

from cdc.derive.definition.definition import Definition
from cdc.derive.engine.input import Input
from cdc.derive.late.rule import FINAL
from cdc.derive.late.shown import is_final, shown
from cdc.derive.step.mark import mark_facts
from cdc.derive.step.resident import stored_rows
from cdc.errors import CdcError, ErrorKind
from cdc.events.values.sql_text import postgres_name
from cdc.tables import TableId


def watermark_at(definition: Definition, opened: Mapping[TableId, DeltaTable]) -> int | None:
    """Return the watermark that the opened table of late rows has; None if there is none yet."""
    if definition.late is None:
        return None
    table = opened[definition.late.rows]
    late = mark_facts(table).get("late")
    if not late:
        what = f"version {table.version()} of {definition.late.rows} has no watermark"
        raise CdcError(ErrorKind.TABLE_STOPPED, what, remedy="choose a later cut")
    watermark: int | None = late["watermark"]
    return watermark


def query_at(
    definition: Definition, opened: Mapping[TableId, DeltaTable], query: str | None = None
) -> str:
    """Return the definition's query for DuckDB, or another form of it, at the opened inputs."""
    text = definition.duckdb if query is None else query
    if definition.late is None:
        return text
    return shown(definition.late, text, watermark_at(definition, opened))


def closing(
    definition: Definition, opened: Mapping[TableId, DeltaTable], before: Mapping[TableId, Input]
) -> str:
    """Return what to select from for the rows that the watermark makes final though none changes.

    Stored rows say whether they are final. Where only final rows are stored, the query has those
    that the watermark ``before`` had not reached. Raises CONFIG if that is gone.
    """
    late = definition.late
    if late is None:
        return ""
    time = f"EPOCH_US({postgres_name(late.shown)})"
    final = is_final(late, time, watermark_at(definition, opened))
    if not late.emits_final:
        return f"{stored_rows(definition.table)} WHERE NOT {postgres_name(FINAL)} AND {final}"
    then = watermark_at(definition, {late.rows: before[late.rows].open()})
    waiting = f"({definition.duckdb}) AS waiting"
    return f"{waiting} WHERE {final} AND NOT {is_final(late, time, then)}"
