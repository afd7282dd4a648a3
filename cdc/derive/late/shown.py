"""Write a query so that its result says which of its rows are final, or has only these."""

from cdc.derive.late.rule import FINAL, LateRule
from cdc.events.values.sql_text import postgres_name

_QUERY = '"_cdc_query"'


def shown(rule: LateRule, query: str, watermark: int | None) -> str:
    """Return the query with the column FINAL, or of its final rows alone, for DuckDB."""
    final = is_final(rule, f"EPOCH_US({_QUERY}.{postgres_name(rule.shown)})", watermark)
    return _shown(rule, query, final)


def shown_by_source(rule: LateRule, query: str, watermark: int | None) -> str:
    """Return the same for Postgres."""
    time = f"EXTRACT(EPOCH FROM {_QUERY}.{postgres_name(rule.shown)})"
    return _shown(rule, query, is_final(rule, f"{time} * 1000000", watermark))


def is_final(rule: LateRule, time: str, watermark: int | None) -> str:
    """Return the condition for the microseconds of ``rule.shown``: never of a NULL."""
    if watermark is None:
        return "FALSE"
    return f"COALESCE({time} <= {watermark - rule.rest:d}, FALSE)"


def _shown(rule: LateRule, query: str, final: str) -> str:
    if rule.emits_final:
        return f"SELECT {_QUERY}.* FROM ({query}) AS {_QUERY} WHERE {final}"  # noqa: S608
    named = f"{final} AS {postgres_name(FINAL)}"
    return f"SELECT {_QUERY}.*, {named} FROM ({query}) AS {_QUERY}"  # noqa: S608 - checked query
