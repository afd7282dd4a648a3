"""Give a definition the time of a cut, on which it may depend."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from cdc.derive.definition.definition import Definition
from cdc.derive.sql import printing
from cdc.derive.sql.cut_time import with_time

ANY_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""A time for those who ask for the names and types of the columns alone."""


def at_time(definition: Definition, time: datetime | None) -> Definition:
    """Return the definition whose ``cut_time()`` is this time; its hash stays.

    One that does not name it stays as it is. Without a time it keeps the call, which no engine
    takes: there is no answer before the first commit.
    """
    if not definition.is_timed or definition.query is None or time is None:
        return definition
    query = with_time(definition.query, time)
    duckdb, postgres = printing.duckdb(query), printing.postgres(query)
    return replace(definition, query=query, duckdb=duckdb, postgres=postgres)
