"""Runs a real pipeline over the tables of ``columns.py``: servers, connector and job."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pyarrow as pa
import yaml
from deltalake import DeltaTable, QueryBuilder
from hypothesis import HealthCheck, Phase, given, settings

from cdc import config as configuration
from cdc.capture.bootstrap import establish
from cdc.client.sync import sync
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path, quarantine_path, table_path
from cdc.lake.records.ledger import Ledger
from cdc.state import pipeline as pipelines
from cdc.state.endpoints import Endpoints
from cdc.tables import TableId
from tests.kinds.columns import AS_TEXT, SCHEMA, TABLES, Kind
from tests.local_spark import QUICK

ROOT = Path(__file__).resolve().parents[2]
SYNC_SECONDS = 900
DIFFERENT = 500
SPELLING = (
    "SET TimeZone = 'UTC'; SET DateStyle = ISO; SET IntervalStyle = postgres;"
    "SET extra_float_digits = 1; SET bytea_output = hex"
)

Row = dict[str, Any]


def random_rows(kinds: Mapping[str, Kind], number: int) -> list[list[str | None]]:
    """Return random rows of texts, drawn by column: hypothesis repeats itself in wide rows."""
    columns = [_values(kind, number) for kind in kinds.values()]
    return [list(row) for row in zip(*columns, strict=True)]


def _values(kind: Kind, number: int) -> list[str | None]:
    """Return random values: every eighth is NULL, and with many rows some repeat."""
    values: list[str | None] = []

    @settings(
        max_examples=min(number, DIFFERENT),
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(kind.texts)
    def collect(text: str) -> None:
        values.append(text)

    collect()
    shuffled = [None if at % 8 == 0 else values[at % len(values)] for at in range(number)]
    Random(number).shuffle(shuffled)
    return shuffled


@dataclass(kw_only=True)
class Pipeline:
    """Fills the tables at the source, and compares them with the lake."""

    given: pipelines.Pipeline
    rows: dict[str, int] = field(default_factory=dict)  # inserted so far, by table

    @property
    def config(self) -> Config:
        return self.given.config

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Connect to the source with fixed settings for printing values."""
        connection = psycopg.connect(self.given.endpoints.source_url, autocommit=True)
        connection.execute(SPELLING.encode())
        return connection

    def execute(self, statements: str) -> None:
        """Execute statements in the source."""
        with self.connect() as connection:
            connection.execute(statements.encode())

    def create(self, table: str, kinds: Mapping[str, Kind]) -> None:
        """Create a table with a column of each kind."""
        columns = ", ".join(f'"{name}" {kind.declared}' for name, kind in kinds.items())
        self.execute(f"CREATE TABLE {SCHEMA}.{table} (id int PRIMARY KEY, n int, {columns})")

    def insert(self, table: str, rows: list[list[str | None]]) -> None:
        """Insert rows with the next free ids."""
        first = self.rows.get(table, 0)
        with (
            self.connect() as connection,
            connection.cursor() as cursor,
            cursor.copy(f"COPY {SCHEMA}.{table} FROM STDIN".encode()) as copy,
        ):
            for number, row in enumerate(rows, start=first):
                copy.write_row([number, 0, *row])
        self.rows[table] = first + len(rows)

    def synced(self) -> dict[str, str]:
        """Wait until the lake has caught up; return the tables' states."""
        try:
            row = sync(self.given, timeout=SYNC_SECONDS).cut
        except CdcError as error:
            if error.kind is not ErrorKind.TABLE_STOPPED:
                raise
            # sync raises this only after it has waited for the last cut.
            last = Ledger(ledger_path(self.config)).last()
            assert last is not None
            row = last
        return {entry.table.removeprefix(f"{SCHEMA}."): entry.state for entry in row.tables}

    def source(self, table: str, kinds: Mapping[str, Kind]) -> dict[int, Row]:
        """Return a table's values as Postgres prints them, by id."""
        listed = ", ".join(kind.oracle.format(c=f'"{name}"') for name, kind in kinds.items())
        query = f"SELECT id, n, {listed} FROM {SCHEMA}.{table}"
        with self.connect() as connection:
            rows = connection.execute(query.encode()).fetchall()
        return {row[0]: dict(zip(["n", *kinds], row[1:], strict=True)) for row in rows}

    def lake(self, table: str, kinds: Mapping[str, Kind]) -> dict[int, Row]:
        """Return a table's values in the lake, read by delta-rs and printed likewise, by id."""
        rows = self.lake_rows(table)
        assert len({row["id"] for row in rows}) == len(rows)
        return {
            row["id"]: {
                "n": row["n"],
                **{
                    name: None if row[name] is None else kind.read(row[name])
                    for name, kind in kinds.items()
                },
            }
            for row in rows
        }

    def lake_rows(self, table: str) -> list[Row]:
        """Return a table's rows in the lake."""
        return _rows(table_path(self.config, TableId(SCHEMA, table)))

    def quarantine(self) -> list[Row]:
        """Return the rows of the quarantine."""
        return _rows(quarantine_path(self.config))

    def compared(self) -> dict[str, dict[int, tuple[Row | None, Row | None]]]:
        """Return the random rows that differ, by table and id: Postgres's and the lake's."""
        differences = {}
        for table, kinds in TABLES.items():
            there, here = self.source(table, kinds), self.lake(table, kinds)
            assert len(there) > 1
            differences[table] = {
                number: different(there.get(number), here.get(number))
                for number in there.keys() | here.keys()
                if there.get(number) != here.get(number)
            }
        return differences


def different(there: Row | None, here: Row | None) -> tuple[Row | None, Row | None]:
    """Return both rows with only the columns that differ."""
    if there is None or here is None:
        return there, here
    names = [name for name in there if there[name] != here[name]]
    return {name: there[name] for name in names}, {name: here[name] for name in names}


def _rows(path: str) -> list[Row]:
    opened = DeltaTable(path)
    answer = QueryBuilder().register("t", opened).execute("SELECT * FROM t")
    return list(pa.table(answer.read_all()).to_pylist())


@contextmanager
def running(
    folder: Path,
    endpoints: Endpoints,
    worker: Mapping[str, str],
    before: Callable[[Pipeline], None],
) -> Iterator[Pipeline]:
    """Run a pipeline that follows the schema; ``before`` fills it for the snapshot."""
    config = configured(folder, endpoints, worker)
    pipeline = Pipeline(given=pipelines.Pipeline(config, endpoints))
    before(pipeline)
    establish(pipeline.given)
    log = folder / "job.log"
    with log.open("w") as output:
        job = subprocess.Popen(
            [sys.executable, "-m", "cdc", "run", "--config", str(folder / "wal2lake.yaml")],
            cwd=ROOT,
            stdout=output,
            stderr=output,
        )
    try:
        yield pipeline
    finally:
        job.send_signal(signal.SIGTERM)
        job.wait(60)


def configured(folder: Path, endpoints: Endpoints, worker: Mapping[str, str]) -> Config:
    """Write and load a configuration for the servers."""
    written = {
        "source": {
            "url": endpoints.source_url,
            "tables": [f"{SCHEMA}.*"],
            "as_text": AS_TEXT,
            "snapshot": "connector",
        },
        "kafka": {"bootstrap_servers": endpoints.kafka.bootstrap},
        "connect": {"url": endpoints.connect, **worker},
        "registry": {"url": endpoints.registry},
        "lake": {"path": "lake"},
        "spark": {"master": "local[2]", "driver_memory": "2g", "conf": QUICK},
    }
    path = folder / "wal2lake.yaml"
    path.write_text(yaml.safe_dump(written))
    return configuration.load(path)
