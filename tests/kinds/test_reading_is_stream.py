"""Test that a reading has exactly the texts that the connector sends, character by character."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc.source.catalog.catalog import SourceTable, inspect
from cdc.source.rows.reading import read
from cdc.source.server.connection import connect
from cdc.source.server.printing import READING
from tests.kinds.columns import SCHEMA, TABLES
from tests.kinds.pipeline import Pipeline, different

pytestmark = [pytest.mark.integration, pytest.mark.deep]

COMPARED = [*TABLES, "large", "keyed", "defaults", "nulls"]


@pytest.fixture(scope="module")
def tables(pipeline: Pipeline) -> dict[str, SourceTable]:
    """Update every other row, so that the stream carries it; return the tables."""
    for table in COMPARED:
        pipeline.execute(f"UPDATE {SCHEMA}.{table} SET n = n WHERE id % 2 = 0")
    pipeline.synced()
    with connect(pipeline.given.endpoints.source_url) as connection:
        found = inspect(connection, pipeline.config).tables
    return {table.table.name: table for table in found}


@pytest.mark.parametrize("table", COMPARED)
def test_texts_are_those_of_the_stream(
    pipeline: Pipeline, tables: dict[str, SourceTable], table: str, tmp_path: Path
) -> None:
    """These texts identify a row without a key: see cdc/apply/changes/reduce.py."""
    path = str(tmp_path / "texts")
    columns = [column for column in tables[table].columns if column.arrives]
    texts = {column.name for column in columns if column.type == "string"}
    with connect(pipeline.given.endpoints.source_url) as connection:
        for name, value in READING.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        read(connection, tables[table].table, columns, path)

    names = [column.name for column in columns]
    rows = (dict(zip(names, row.values(), strict=True)) for row in _rows(path))
    there = {int(row["id"]): {name: row[name] for name in texts} for row in rows}
    lake = pipeline.lake_rows(table)
    here = {row["id"]: {name: row[name] for name in texts} for row in lake}
    unlike = {n: different(there.get(n), here.get(n)) for n in there if there[n] != here.get(n)}

    assert {n: there[n] for n in there if n not in here} == {}  # a refused row has none
    assert len(there) == len(lake) > 0
    assert unlike == {}


def _rows(path: str) -> list[dict[str, str]]:
    return list(DeltaTable(path).to_pyarrow_table().to_pylist())
