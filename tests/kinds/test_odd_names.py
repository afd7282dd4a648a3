"""Names that are odd to Avro, Kafka, Spark or Delta, and none to Postgres, on the real chain."""

import pytest
from psycopg import sql

from cdc.client.resnapshot import prepare
from cdc.client.selection import TableChoice
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger
from cdc.source.catalog.catalog import inspect
from cdc.source.server.connection import connect
from cdc.source.server.finding import Level
from tests.kinds import odd
from tests.kinds.columns import SCHEMA
from tests.kinds.pipeline import Pipeline

pytestmark = pytest.mark.integration

STOPPED = "9lives"


@pytest.fixture(scope="module")
def states(pipeline: Pipeline) -> dict[str, str]:
    """After a snapshot and changes of all of them."""
    pipeline.synced()
    for first in (3, 6):
        odd.change(pipeline, first)
    return pipeline.synced()


def reason(pipeline: Pipeline, table: str) -> str:
    last = Ledger(ledger_path(pipeline.config)).last()
    entry = last.entry(f"{SCHEMA}.{table}") if last else None
    assert entry is not None
    return entry.reason


def test_check_has_nothing_against_them(pipeline: Pipeline) -> None:
    with connect(pipeline.given.endpoints.source_url) as connection:
        findings = inspect(connection, pipeline.config).findings

    odd_ones = {f"{SCHEMA}.{table}" for table in (*odd.TABLES, odd.WIDE)}
    assert [f for f in findings if f.level is Level.ERROR and f.subject in odd_ones] == []


@pytest.mark.parametrize("table", [*odd.TABLES, odd.WIDE])
def test_a_table_with_an_odd_name_or_odd_columns_is_the_sources(
    pipeline: Pipeline, states: dict[str, str], table: str
) -> None:
    assert (states[table], reason(pipeline, table)) == ("streaming", "")
    assert len(odd.source(pipeline, table)) > 3
    assert odd.lake(pipeline, table) == odd.source(pipeline, table)


def test_a_name_that_comes_while_it_streams_stops_its_table_and_no_other(
    pipeline: Pipeline, states: dict[str, str]
) -> None:
    assert states[STOPPED] == "streaming"
    with pipeline.connect() as connection:
        connection.execute(
            sql.SQL('ALTER TABLE {} ADD COLUMN "_metadata" text').format(
                sql.Identifier(SCHEMA, STOPPED)
            )
        )
    odd.change(pipeline, 9)

    after = pipeline.synced()

    assert {table: after[table] for table in odd.TABLES} == {
        **dict.fromkeys(odd.TABLES, "streaming"),
        STOPPED: "stopped",
    }
    said = reason(pipeline, STOPPED)
    assert "column _metadata: Spark and Delta have a column of their own with this name" in said
    assert odd.lake(pipeline, odd.WIDE) == odd.source(pipeline, odd.WIDE)
    choice = TableChoice(names=(f"{SCHEMA}.{STOPPED}",))
    with pytest.raises(CdcError) as caught:
        prepare(pipeline.given, choice, where=None, shadow=False)
    assert caught.value.kind is ErrorKind.SOURCE_NOT_READY
    assert "column _metadata" in caught.value.message
