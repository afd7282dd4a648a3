"""Lets ``up`` wait for the first matching table, because an embedded Postgres starts empty."""

from collections.abc import Callable

import psycopg

from cdc.config import Config
from cdc.state.directory import StateDir
from cdc.state.pipeline import Pipeline
from cdc.tables import TableId, matches
from cdc.waiting import poll

_LOOK_EVERY_SECONDS = 0.5
_TABLES = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname <> 'pg_catalog'"


def await_first_table(pipeline: Pipeline, say: Callable[[str], None]) -> None:
    """Wait until the embedded Postgres has a table that matches ``source.tables``.

    Returns at once for a configured source: a missing table is an error there.
    """
    config = pipeline.config
    if config.source.url is not None:
        return
    with psycopg.connect(pipeline.endpoints.source_url, autocommit=True) as connection:
        if _has_match(connection, config):
            return
        where = StateDir(config.state_dir).endpoints_file
        patterns = ", ".join(config.source.tables)
        say(f"waiting for a table that matches {patterns}: create one (source_url is in {where})")
        poll(lambda: _has_match(connection, config), bool, every=_LOOK_EVERY_SECONDS)


def _has_match(connection: psycopg.Connection, config: Config) -> bool:
    names = connection.execute(_TABLES).fetchall()
    return any(matches(TableId(schema, name), config.source.tables) for schema, name in names)
