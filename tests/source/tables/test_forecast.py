"""Test what a dry run reports for a real Postgres."""

from collections.abc import Callable

import pytest

from cdc.client.forecast import forecast
from cdc.source.catalog.captured import captured_tables
from cdc.source.catalog.relations import size_of, tables_of
from cdc.source.predicate.postgres_check import predicate
from cdc.source.server.connection import connect
from cdc.tables import TableId
from tests.source.conftest import Maker

pytestmark = pytest.mark.integration

Sql = Callable[[str], object]


def test_rows_bytes_and_room(source_url: str, sql: Sql, make_config: Maker, schema: str) -> None:
    sql("""
        CREATE TABLE big (id int PRIMARY KEY, note text);
        INSERT INTO big SELECT n, repeat('x', 100) FROM generate_series(1, 20000) n;
        CREATE TABLE fresh (id int PRIMARY KEY);
        INSERT INTO fresh VALUES (1);
        ANALYZE big
    """)
    sql(f"SELECT pg_create_logical_replication_slot('{schema}', 'pgoutput')")
    config, big, fresh = make_config(), TableId(schema, "big"), TableId(schema, "fresh")
    past = [{"command": "resnapshot", "state": "done", "rows_read": 100, "seconds": 2.0, "id": "x"}]
    with connect(source_url) as connection:
        table = next(t for t in captured_tables(connection, config) if t.table == big)
        tenth = predicate(connection, big, table.columns, "id <= 2000")
        whole = forecast(config, connection, "resnapshot", [big], past=past)
        part = forecast(config, connection, "resnapshot", [big], past=past, predicate=tenth)
        both = forecast(config, connection, "resnapshot", [big, fresh], past=past)
        size = connection.execute(f"SELECT pg_table_size('{big}')".encode()).fetchone()
        limit = connection.execute(
            "SELECT pg_size_bytes(current_setting('max_slot_wal_keep_size'))"
        )
        allowed = limit.fetchone()
        connection.execute("SELECT pg_drop_replication_slot(%s)", (schema,))

    assert (whole.rows, whole.bytes) == (20_000, size[0] if size else 0)
    assert (whole.seconds, whole.basis) == (400.0, "50 rows/s in x")
    assert part.rows is not None
    assert 1800 <= part.rows <= 2200
    assert part.bytes == round((whole.bytes or 0) * part.rows / 20_000)
    assert part.where == "id <= 2000"
    assert both.rows is None
    assert both.seconds is None
    assert whole.slot is not None
    assert (whole.slot.name, whole.slot.limit_bytes) == (schema, allowed[0] if allowed else 0)
    assert (whole.slot.retained_bytes or 0) > 0
    assert {disk.place: disk.needed_bytes for disk in whole.disks} == {
        "lake.path": 2 * (whole.bytes or 0),
        "state_dir": 0,
    }


def test_every_table_of_the_source(source_url: str, sql: Sql, schema: str) -> None:
    sql("CREATE TABLE one (id int); CREATE VIEW two AS SELECT 1")
    sql("CREATE SCHEMA IF NOT EXISTS wal2lake")
    with connect(source_url) as connection:
        found = tables_of(connection)
        gone = size_of(connection, TableId(schema, "gone"))

    assert [table for table in found if table.schema == schema] == [TableId(schema, "one")]
    assert all(table.schema not in {"pg_catalog", "wal2lake"} for table in found)
    assert (gone.rows, gone.bytes) == (None, None)
