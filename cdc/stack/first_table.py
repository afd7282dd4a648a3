"""Lets ``up`` wait until the tables of ``source.tables`` exist, because a new Postgres is empty."""

from collections.abc import Callable

import psycopg

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.state.directory import StateDir
from cdc.state.pipeline import Pipeline
from cdc.tables import TableId, matches
from cdc.waiting import poll

_LOOK_EVERY_SECONDS = 0.5
_TABLES = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname <> 'pg_catalog'"


def await_tables(
    pipeline: Pipeline, say: Callable[[str], None], *, also_configured: bool = False
) -> None:
    """Wait until each pattern of ``source.tables`` matches a table of the source.

    Returns at once for a configured source, unless ``also_configured``: there it is an error if a
    pattern matches nothing. Raises UNREACHABLE if the source goes away meanwhile.
    """
    config = pipeline.config
    if config.source.url is not None and not also_configured:
        return
    try:
        with psycopg.connect(pipeline.endpoints.source_url, autocommit=True) as connection:
            _await(connection, config, say)
    except psycopg.OperationalError as error:
        raise CdcError(
            ErrorKind.UNREACHABLE,
            "the source went away while its tables were awaited",
            detail=str(error).strip(),
            remedy="make sure that it runs and can be reached",
        ) from None


def _await(connection: psycopg.Connection, config: Config, say: Callable[[str], None]) -> None:
    unmatched = _unmatched(connection, config.source.tables)
    if not unmatched:
        return
    say(f"waiting for a table that matches {', '.join(unmatched)}: {_remedy(config)}")
    poll(
        lambda: _unmatched(connection, config.source.tables),
        lambda left: not left,
        every=_LOOK_EVERY_SECONDS,
    )


def _remedy(config: Config) -> str:
    if config.source.url is not None:
        return "create one at the source, or correct source.tables"
    return f"create one (source_url is in {StateDir(config.state_dir).endpoints_file})"


def _unmatched(connection: psycopg.Connection, patterns: list[str]) -> list[str]:
    """Return the patterns that match no table."""
    tables = [TableId(*names) for names in connection.execute(_TABLES)]
    return [one for one in patterns if not any(matches(table, [one]) for table in tables)]
