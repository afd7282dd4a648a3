"""An embedded Postgres begins empty: ``up`` waits for the first table that is asked for."""

from collections.abc import Callable

import psycopg

from cdc.config import Config
from cdc.state.directory import StateDir
from cdc.state.endpoints import Endpoints
from cdc.tables import TableId, matches
from cdc.waiting import poll

_LOOK_EVERY_SECONDS = 0.5
_TABLES = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname <> 'pg_catalog'"


def await_first_table(config: Config, endpoints: Endpoints, say: Callable[[str], None]) -> None:
    """Returns at once for a source that is not ours: there a missing table is an error."""
    if config.source.url is not None:
        return
    with psycopg.connect(endpoints.source_url, autocommit=True) as connection:
        if _is_there(connection, config):
            return
        where = StateDir(config.state_dir).endpoints_file
        patterns = ", ".join(config.source.tables)
        say(f"waiting for a table that matches {patterns}: create one, {where} has source_url")
        poll(lambda: _is_there(connection, config), bool, every=_LOOK_EVERY_SECONDS)


def _is_there(connection: psycopg.Connection, config: Config) -> bool:
    found = connection.execute(_TABLES).fetchall()
    return any(matches(TableId(schema, name), config.source.tables) for schema, name in found)
