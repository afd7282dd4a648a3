"""Provide a configuration and a schema for each test."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdc.config import Config, Connect, Kafka, Lake, Registry, Source
from cdc.errors import CdcError, ErrorKind
from cdc.source.catalog.catalog import SourceTable, inspect
from cdc.source.connector import worker_rest
from cdc.source.notes import triggers
from cdc.source.server import slot
from cdc.source.server.connection import Connection, connect
from cdc.state.endpoints import Endpoints
from cdc.tables import TableId
from cdc.waiting import until
from tests.servers.fixtures import worker_settings
from tests.source.noting import Source as Noting

Maker = Callable[..., Config]
Sql = Callable[[str], object]


@pytest.fixture
def make_config(tmp_path: Path, request: pytest.FixtureRequest) -> Maker:
    """Return a maker of configurations whose name and schema belong to the test alone.

    The connector reads the first snapshot, so that rows from before are in the topics.
    """
    name = request.node.name.partition("[")[0].removeprefix("test_")[:40].rstrip("_")

    def make(endpoints: Endpoints | None = None, **source: object) -> Config:
        given = {"tables": [f"{name}.*"], "snapshot": "connector", **source}
        config = Config(
            name=name,
            source=Source.model_validate(given),
            lake=Lake(path=str(tmp_path / "lake")),
            state_dir=tmp_path / "state",
        )
        if endpoints is None:
            return config
        return config.model_copy(
            update={
                "kafka": Kafka(bootstrap_servers=endpoints.kafka.bootstrap),
                "connect": Connect(url=endpoints.connect, **worker_settings(request)),
                "registry": Registry(url=endpoints.registry),
            }
        )

    return make


@pytest.fixture
def schema(make_config: Maker) -> str:
    """Return the name of the test's schema."""
    return make_config().name


def open_schema(url: str, schema: str) -> Connection:
    """Create the schema anew and return a connection whose search path begins with it."""
    connection = connect(url)
    connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())
    connection.execute(f"CREATE SCHEMA {schema}".encode())
    connection.execute(f"SET search_path = {schema}, public".encode())
    return connection


@contextmanager
def capturing(chain: Endpoints, schema: str) -> Iterator[Connection]:
    """Open a schema like ``open_schema``, and remove the test's connector and slot afterwards."""
    with open_schema(chain.source_url, schema) as connection:
        yield connection
        worker_rest.delete(chain.connect, schema)
        # The server has few slots, and each of these tests creates one.
        until(lambda: _dropped(connection, schema), 60, f"slot {schema} stayed in use")


def _dropped(connection: Connection, name: str) -> bool:
    """Drop the slot unless it is read; a task may begin to after its connector was deleted."""
    try:
        slot.drop(connection, name)
    except CdcError as error:
        if error.kind is not ErrorKind.UNREACHABLE:
            raise
        return False
    return True


@pytest.fixture
def sql(source_url: str, schema: str) -> Iterator[Sql]:
    """Return a function that runs a statement in the test's schema."""
    with open_schema(source_url, schema) as connection:
        yield lambda text: connection.execute(text.encode())


@pytest.fixture(scope="module")
def noting_url(source_url: str) -> str:
    """Return the URL of a Postgres with our event triggers installed."""
    with connect(source_url) as connection:
        connection.execute(triggers.script().encode())
    return source_url


@pytest.fixture
def noting(noting_url: str, schema: str) -> Iterator[Noting]:
    """Open the test's schema in a Postgres with event triggers, with earlier notes skipped."""
    with open_schema(noting_url, schema) as connection:
        source = Noting(connection, schema)
        source.notes()
        yield source


def judged(config: Config, connection: Connection, name: str) -> SourceTable:
    """Return a table of the test's schema as the catalogue shows it now."""
    table = TableId(config.name, name)
    return next(each for each in inspect(connection, config).tables if each.table == table)
