"""Ask the source whether it accepts the queries of derived tables, without running them."""

from collections.abc import Iterator, Sequence

import psycopg

from cdc.derive.definition.at_time import ANY_TIME, at_time
from cdc.derive.definition.definition import Definition
from cdc.derive.definition.inlined import beyond_sql, inlined
from cdc.derive.sql.problem import Problem
from cdc.source.server.connection import Connection

_STATEMENT = "wal2lake_definition"


def refused_by_source(
    connection: Connection, definitions: Sequence[Definition]
) -> Iterator[Problem]:
    """Yield a problem for each query that Postgres refuses, for its types for instance.

    A meaning that only one of two engines accepts is no meaning that both can prove. Patterns,
    folds and histories are left out, which Postgres does not have.
    """
    known = {one.table: at_time(one, ANY_TIME) for one in definitions}
    for one in known.values():
        if beyond_sql(one, known) is not None:
            continue
        if message := _refusal(connection, inlined(one, known)):
            what = f"the source refuses the query: {message}"
            remedy = "correct it; psql shows the place, and the query is plain Postgres"
            yield Problem(one.file, 1, 1, what, remedy)


def _refusal(connection: Connection, query: str) -> str:
    try:
        with connection.transaction():
            connection.execute(f"PREPARE {_STATEMENT} AS {query}".encode())
    except psycopg.Error as error:
        return error.diag.message_primary or type(error).__name__
    connection.execute(f"DEALLOCATE {_STATEMENT}".encode())
    return ""
