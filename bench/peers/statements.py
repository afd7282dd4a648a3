"""Writes the job's SQL: one source and one Paimon table for each table, in one statement set."""

from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from bench.whole.tables import SCHEMA

_COLUMNS: Final = (
    "id BIGINT, revision INT, amount DECIMAL(12, 2), name STRING, note STRING,"
    " `at` TIMESTAMP_LTZ(6), PRIMARY KEY (id) NOT ENFORCED"
)


def job(url: str, tables: list[str], warehouse: Path, *, checkpoint_seconds: int) -> str:
    """Return all statements for a source at ``url``.

    Manifests are not compressed, because fastavro reads no Zstandard here.
    """
    parts = [
        f"SET 'execution.checkpointing.interval' = '{checkpoint_seconds} s';",
        "SET 'parallelism.default' = '1';",
        *(_source(url, table) for table in tables),
        f"CREATE CATALOG lake WITH ('type' = 'paimon', 'warehouse' = 'file:{warehouse}');",
        *(
            f"CREATE TABLE lake.`default`.{table} ({_COLUMNS})"
            " WITH ('bucket' = '1', 'file.format' = 'parquet', 'manifest.compression' = 'null');"
            for table in tables
        ),
        "EXECUTE STATEMENT SET BEGIN",
        *map(_insert, tables),
        "END;",
    ]
    return "\n".join(parts) + "\n"


def _insert(table: str) -> str:
    return f"INSERT INTO lake.`default`.{table} SELECT * FROM source_{table};"  # noqa: S608 - ours


def _source(url: str, table: str) -> str:
    place = urlsplit(url)
    options = {
        "connector": "postgres-cdc",
        "hostname": str(place.hostname),
        "port": str(place.port),
        "username": unquote(str(place.username)),
        "password": unquote(place.password or ""),
        "database-name": place.path.lstrip("/").partition("?")[0],
        "schema-name": SCHEMA,
        "table-name": table,
        "slot.name": f"flink_{table}",
        "decoding.plugin.name": "pgoutput",
        "scan.incremental.snapshot.enabled": "true",
        "debezium.publication.name": f"flink_{table}",
        "debezium.publication.autocreate.mode": "disabled",
    }
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    return f"CREATE TEMPORARY TABLE source_{table} ({_COLUMNS}) WITH ({listed});"
