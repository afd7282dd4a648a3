"""``up`` waits for tables that do not exist yet: always for its own Postgres, else where asked."""

from pathlib import Path

import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.source.server.connection import connect
from cdc.stack.first_table import await_tables
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from tests.source.conftest import Maker, Sql

pytestmark = pytest.mark.integration
NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


def pipeline(
    make_config: Maker, url: str, *, configured: str | None, patterns: list[str]
) -> Pipeline:
    config = make_config(url=configured, tables=patterns)
    return Pipeline(config, Endpoints(source_url=url, kafka=Broker(""), connect="", registry=""))


def test_every_pattern_is_awaited(
    make_config: Maker, sql: Sql, schema: str, source_url: str
) -> None:
    patterns = [f"{schema}.a*", f"{schema}.b*"]
    waiting = pipeline(make_config, source_url, configured=source_url, patterns=patterns)
    sql("CREATE TABLE a1 (id int)")
    said = list[str]()

    def say(what: str) -> None:
        said.append(what)
        sql("CREATE TABLE b1 (id int)")

    await_tables(waiting, say, also_configured=True)

    [told] = said
    assert told.startswith(f"waiting for a table that matches {schema}.b*: create one")


def test_tables_of_a_configured_source_are_not_awaited_unasked(make_config: Maker) -> None:
    typo = pipeline(make_config, NOWHERE, configured=NOWHERE, patterns=["no.such"])

    await_tables(typo, pytest.fail)


def test_a_source_that_goes_away_is_named(
    make_config: Maker, source_url: str, tmp_path: Path
) -> None:
    patterns = [f"{tmp_path.name}.*"]
    waiting = pipeline(make_config, source_url, configured=source_url, patterns=patterns)
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_tables%'"

    def end_session(_what: str) -> None:
        with connect(source_url) as connection:
            connection.execute(f"{ended} AND pid <> pg_backend_pid()".encode())

    with pytest.raises(CdcError, match="the source went away") as refused:
        await_tables(waiting, end_session, also_configured=True)

    assert refused.value.kind is ErrorKind.UNREACHABLE
