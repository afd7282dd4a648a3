"""Makes a small table like the job's, without Spark; tells what two independent readers see."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from cdc.lake.commit.committer import Committer
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.table.positions import Position
from tests.duckdb_reader import duckdb_with_delta

COLUMNS: Final[dict[str, Any]] = {"id": "integer", "name": "string", "_cdc_offset": "long"}
FEATURES: Final = ["deletionVectors", "columnMapping", "timestampNtz"]


def properties(more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {
        "delta.enableDeletionVectors": "true",
        "delta.columnMapping.mode": "name",
        "delta.columnMapping.maxColumnId": "9",
        "delta.checkpointInterval": "20",
        "wal2lake.key": '["id"]',
        "wal2lake.mode": "keyed",
        **(more or {}),
    }


def protocol_action() -> dict[str, Any]:
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": FEATURES,
        "writerFeatures": [*FEATURES, "invariants", "appendOnly"],
    }


def field(number: int, name: str, of: object) -> dict[str, Any]:
    metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c-{number}"}
    return {"name": name, "type": of, "nullable": True, "metadata": metadata}


def metadata_action(
    columns: Mapping[str, Any] = COLUMNS, more: Mapping[str, str] | None = None
) -> dict[str, Any]:
    fields = [field(number, name, of) for number, (name, of) in enumerate(columns.items(), 1)]
    return {
        "id": "96031e94-b54d-4054-bc93-982557bc2aee",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": properties(more),
        "createdTime": 0,
    }


def make(
    path: Path, columns: Mapping[str, Any] = COLUMNS, more: Mapping[str, str] | None = None
) -> Committer:
    """Create the empty table at ``path``."""
    info = {"timestamp": 0, "operation": "CREATE TABLE", "userMetadata": at(0).metadata()}
    actions = [
        {"commitInfo": info},
        {"protocol": protocol_action()},
        {"metaData": metadata_action(columns, more)},
    ]
    append_entry(path, 0, actions)
    return Committer(str(path))


def append_entry(path: Path, version: int, actions: Sequence[Mapping[str, Any]]) -> None:
    entry = path / "_delta_log" / f"{version:020d}.json"
    entry.parent.mkdir(parents=True, exist_ok=True)
    entry.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def actions(path: Path, version: int) -> list[dict[str, Any]]:
    text = (path / "_delta_log" / f"{version:020d}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def at(offset: int) -> Position:
    return Position(epoch=1, offset=offset)


def rows(committer: Committer, ids: Sequence[int], name: str = "n", offset: int = 1) -> pa.Table:
    """Return rows of ``COLUMNS``."""
    listed = [{"id": i, "name": f"{name}{i}", "_cdc_offset": offset} for i in ids]
    return pa.Table.from_pylist(listed, schema=arrow_schema(committer.open().metadata))


def add(committer: Committer, ids: Sequence[int], name: str = "n", offset: int = 1) -> str:
    """Add rows in one commit, and return the path of their file."""
    new = rows(committer, ids, name, offset)
    before = set(committer.open().files)
    committer.commit(new, {}, at(offset))
    (path,) = set(committer.open().files) - before
    return path


def seen(path: Path, version: int | None = None) -> list[dict[str, Any]]:
    """Return the rows that delta-rs sees, and DuckDB too in the newest version, by id."""
    table = DeltaTable(str(path), version=version)
    query = QueryBuilder().register("t", table).execute("SELECT * FROM t ORDER BY id")
    found: list[dict[str, Any]] = pa.table(query.read_all()).to_pylist()
    if version is None:
        with duckdb_with_delta() as connection:
            scan = f"SELECT * FROM delta_scan('{path}') ORDER BY id"
            assert connection.execute(scan).arrow().read_all().to_pylist() == found
    return found


def ids(path: Path, version: int | None = None) -> list[int]:
    return [row["id"] for row in seen(path, version)]
