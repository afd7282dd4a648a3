"""Lake tables that delta-rs writes without the pipeline, and the schema to compare them with."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc.client.moment import enter_snapshot
from cdc.client.verify.verdict import TableVerdict, compare_table
from cdc.config import Config, Lake, Source
from cdc.lake.records.ledger import TableEntry
from cdc.source.catalog.captured import captured_tables
from cdc.source.server.connection import Connection, connect


@dataclass(kw_only=True)
class Pair:
    """Makes a schema of the source anew, and tables of a lake for it."""

    url: str
    schema: str
    folder: Path
    connection: Connection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = connect(self.url)
        self.run(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")
        self.run(f"CREATE SCHEMA {self.schema}")
        self.run(f"SET search_path = {self.schema}, public")

    def run(self, statement: str) -> None:
        self.connection.execute(statement.encode())

    def lake(self, table: str, columns: dict[str, pa.Array]) -> TableEntry:
        path = str(self.folder / self.schema / table)
        own = {"_cdc_offset": pa.array([1] * len(next(iter(columns.values()))), pa.int64())}
        write_deltalake(path, pa.table(columns | own), mode="overwrite")
        return TableEntry(
            table=f"{self.schema}.{table}",
            path=path,
            version=DeltaTable(path).version(),
            offset=1,
            state="streaming",
        )

    def verdict(self, table: str, entry: TableEntry | None) -> TableVerdict:
        """Compare in a snapshot, as ``verify`` does."""
        config = Config(
            source=Source(tables=[f"{self.schema}.{table}"]), lake=Lake(path=str(self.folder))
        )
        with connect(self.url) as holder, connect(self.url) as reader:
            holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            exported = holder.execute("SELECT pg_export_snapshot()").fetchone()
            assert exported is not None
            enter_snapshot(reader, exported[0])
            (found,) = captured_tables(reader, config)
            return compare_table(reader, found, entry, self.folder)


@pytest.fixture
def pair(source_url: str, tmp_path: Path) -> Iterator[Pair]:
    made = Pair(url=source_url, schema="shop", folder=tmp_path)
    yield made
    made.connection.close()
