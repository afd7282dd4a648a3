"""Wherever a table is read, only its own rows are, as ``SELECT ... FROM ONLY`` shows them.

Postgres is the reference. tests/source/capture/test_chain.py tests the connector.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from psycopg import sql

from cdc.client.verify import source_rows
from cdc.client.verify.render import rendering
from cdc.source.catalog.catalog import SourceTable, inspect
from cdc.source.predicate.postgres_check import predicate, statement
from cdc.source.rows.reading import read, read_keys
from cdc.source.server.connection import Connection, connect
from cdc.source.server.printing import READING
from cdc.tables import TableId
from tests.source.conftest import Maker, open_schema

pytestmark = pytest.mark.integration

CHANGES = {
    "children": "SELECT",
    "the parent is emptied alone": "TRUNCATE ONLY parent",
    "all are emptied": "TRUNCATE parent",
    "a child leaves": "ALTER TABLE child NO INHERIT parent",
    "a child leaves and is back": (
        "ALTER TABLE child NO INHERIT parent; ALTER TABLE child INHERIT parent"
    ),
    "a child takes a row of the parent's key": "INSERT INTO child VALUES (1, 'twice')",
}


@pytest.fixture
def source(source_url: str, schema: str) -> Iterator[Connection]:
    with open_schema(source_url, schema) as connection:
        connection.execute("CREATE TABLE parent (id int PRIMARY KEY, v text)")
        connection.execute("CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent)")
        connection.execute("CREATE TABLE grandchild (PRIMARY KEY (id)) INHERITS (child)")
        for number, table in enumerate(("parent", "child", "grandchild")):
            connection.execute(
                f"INSERT INTO {table} SELECT i, '{table}' FROM"
                f" generate_series({number}1, {number}9) i".encode()
            )
        yield connection


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.replace(" ", "-"))
@pytest.mark.parametrize("name", ["parent", "child", "grandchild"])
def test_a_table_has_only_its_own_rows_wherever_it_is_read(
    source: Connection,
    source_url: str,
    make_config: Maker,
    tmp_path: Path,
    *,
    change: str,
    name: str,
) -> None:
    source.execute(CHANGES[change].encode())
    config = make_config()
    expected = {str(number) for (number,) in source.execute(f"SELECT id FROM ONLY {name}".encode())}
    with connect(source_url) as connection:
        for setting, value in READING.items():
            connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
        catalog = inspect(connection, config)
        assert [finding for finding in catalog.findings if finding.level.value == "error"] == []
        (table,) = [t for t in catalog.tables if t.table.name == name]
        ids = {
            "a reading": _reading(connection, table, tmp_path / "whole"),
            "verify": _compared(connection, table.table),
            "a condition": _filtered(connection, table),
        }
        numbers = [[str(number)] for number in range(1, 40)]
        columns = list(table.columns)
        path = str(tmp_path / "keys")
        read_keys(connection, table.table, columns, ["id"], numbers, path)
        ids["keys"] = _first(DeltaTable(path).to_pyarrow_table())

    assert ids == dict.fromkeys(ids, sorted(expected))


def _reading(connection: Connection, table: SourceTable, path: Path) -> list[str]:
    read(connection, table.table, list(table.columns), str(path))
    return _first(DeltaTable(str(path)).to_pyarrow_table())


def _compared(connection: Connection, table: TableId) -> list[str]:
    blocks = source_rows.rows(connection, table, {"id": rendering("int4", pa.int32())})
    return sorted(text for block in blocks for text in block.column("c0").to_pylist())


def _filtered(connection: Connection, table: SourceTable) -> list[str]:
    condition = predicate(connection, table.table, list(table.columns), "id > 0")
    query = statement(table.table, condition, sql.Identifier("id"))
    return sorted(str(number) for (number,) in connection.execute(query))


def _first(rows: pa.Table) -> list[str]:
    return sorted(rows.column("c0").to_pylist())
