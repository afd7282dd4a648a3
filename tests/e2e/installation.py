"""Runs commands of an installation under test, and reads its source and its lake independently."""

import json
import math
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
import psycopg
import pyarrow as pa
import yaml
from deltalake import DeltaTable, QueryBuilder
from psycopg import sql

from tests.e2e.forked_command import run_command
from tests.local_spark import QUICK
from tests.servers.server import Server

SECONDS: Final = 1500  # a command that takes longer has hung
KEYED: Final = ("accounts", "moves", "documents")
APPENDED: Final = ("audit",)
_CONFIG: Final = ("--config", "wal2lake.yaml")
TABLES_SQL: Final = """
CREATE SCHEMA bank;
CREATE TABLE bank.accounts (
  id int PRIMARY KEY, owner text NOT NULL, balance numeric(14,2) NOT NULL, opened date,
  touched timestamptz);
CREATE TABLE bank.moves (
  id bigint PRIMARY KEY, from_id int REFERENCES bank.accounts ON UPDATE CASCADE,
  to_id int REFERENCES bank.accounts ON UPDATE CASCADE, amount numeric(14,2), at timestamp);
CREATE TABLE bank.documents (id int PRIMARY KEY, revision int, body text, raw bytea, tags text[]);
CREATE TABLE bank.audit (what text, amount numeric(14,2), factor double precision);
CREATE TABLE bank.victim (id int PRIMARY KEY, value text);
CREATE TABLE bank.emptied (id int PRIMARY KEY, value text);
CREATE TABLE bank.many (id int PRIMARY KEY, v bigint);
INSERT INTO bank.accounts
  SELECT i, 'owner ' || i, 1000, date '2020-01-01' + i, timestamptz '2024-05-06 07:08:09.123456Z'
  FROM generate_series(1, 2000) i;
INSERT INTO bank.documents
  SELECT i, 0, repeat(md5(i::text), 400), decode(repeat(md5(i::text), 200), 'hex'),
         ARRAY['a', NULL, 'b c']
  FROM generate_series(1, 50) i;
INSERT INTO bank.victim SELECT i, 'v' || i FROM generate_series(1, 100) i;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """A folder with a configuration, and the servers that are not embedded."""

    folder: Path
    servers: Mapping[str, Server]
    """The servers that are not embedded; always includes the source."""
    lake_place: str = "lake"
    """``lake.path``, from the folder."""

    @classmethod
    def write(
        cls,
        folder: Path,
        servers: Mapping[str, Server],
        worker: Mapping[str, str],
        lake: str = "lake",
    ) -> "Installation":
        """Write a configuration for these servers; the others are embedded."""
        folder.mkdir(parents=True)
        keys = {"kafka": "bootstrap_servers", "registry": "url", "connect": "url"}
        given = {name: {keys[name]: servers[name].address} for name in keys if name in servers}
        if "connect" in given:
            given["connect"] |= worker
        written = {
            **given,
            "source": {
                "url": servers["postgres"].address,
                "tables": ["bank.*", "lab.*"],
                "append_only": ["bank.audit"],
            },
            "lake": {"path": lake},
            "spark": {"master": "local[2]", "driver_memory": "2g", "conf": QUICK},
            "job": {"maintain_every_commits": 4, "optimize_small_files": 4},
        }
        (folder / "wal2lake.yaml").write_text(yaml.safe_dump(written))
        return cls(folder=folder, servers=servers, lake_place=lake)

    @property
    def source_url(self) -> str:
        """Return the source's URL."""
        return self.servers["postgres"].address

    @property
    def state_dir(self) -> Path:
        """Return the state directory."""
        return self.folder / ".wal2lake"

    def run(self, *arguments: str, expect: int = 0) -> str:
        """Run a wal2lake command and assert its exit code; return its output."""
        done = self.done(*arguments)
        assert done.returncode == expect, (
            f"{arguments} gave {done.returncode}, not {expect}\n{done.stdout}\n{done.stderr}"
        )
        return done.stdout + done.stderr

    def done(self, *arguments: str, seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
        """Run a wal2lake command; accept any exit code."""
        given = (*arguments, *_CONFIG)
        return run_command(given, self.folder, self.environment, seconds)

    def command(self, *arguments: str) -> list[str]:
        """Return the command line, to be run in ``folder``."""
        return [sys.executable, "-m", "cdc", *arguments, *_CONFIG]

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of commands."""
        return os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}

    def facts(self, *arguments: str) -> dict[str, Any]:
        """Return the JSON that a successful command prints."""
        return self._parsed(self.run(*arguments, "--json"))

    def any_facts(self, *arguments: str) -> dict[str, Any]:
        """Return the JSON that a command prints, whatever its exit code."""
        return self._parsed(self.done(*arguments, "--json").stdout)

    @staticmethod
    def _parsed(printed: str) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(printed[printed.index("{") : printed.rindex("}") + 1])
        return parsed

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Connect to the source, in autocommit mode."""
        return psycopg.connect(self.source_url, autocommit=True)

    def execute(self, statements: str) -> None:
        """Execute statements in the source."""
        with self.connect() as connection:
            connection.execute(statements.encode())

    def source_rows(self, table: str) -> Counter[tuple[Any, ...]]:
        """Return the rows of a bank's table in the source."""
        with self.connect() as connection:
            query = sql.SQL("SELECT * FROM {}").format(sql.Identifier("bank", table))
            return Counter(hashable(row) for row in connection.execute(query))

    def lake_rows(self, table: str) -> Counter[tuple[Any, ...]]:
        """Return a table's rows read by delta-rs, as Python values, without wal2lake."""
        return self.lake_query("bank", table, "SELECT * FROM t")

    def lake_query(self, schema: str, table: str, query: str) -> Counter[tuple[Any, ...]]:
        """Return the rows of a query over the table ``t``, without ``_cdc_`` columns."""
        opened = self.table(schema, table)
        rows = pa.table(QueryBuilder().register("t", opened).execute(query).read_all())
        names = [name for name in rows.column_names if not name.startswith("_cdc_")]
        return Counter(hashable(tuple(row[n] for n in names)) for row in rows.to_pylist())

    def assert_equal(self, *tables: str) -> None:
        """Assert that the tables are equal, by the independent reader."""
        for table in tables or (*KEYED, *APPENDED):
            difference = self.source_rows(table) - self.lake_rows(table)
            surplus = self.lake_rows(table) - self.source_rows(table)
            assert not difference, f"{table}: missing or changed in the lake: {len(difference)}"
            assert not surplus, f"{table}: too much in the lake: {len(surplus)}"

    def table(self, schema: str, table: str) -> DeltaTable:
        """Open a table of the lake at its newest version."""
        place = self.lake_place
        lake = place if "://" in place else self.folder / place
        return DeltaTable(f"{lake}/{schema}/{table}")

    def pid(self, server: str) -> int:
        """Return the pid of a supervised process, from ``status``."""
        servers = self.facts("status")["servers"]
        return int(next(s["pid"] for s in servers if s["name"] == server))

    def crash(self, server: str) -> None:
        """Kill a process; the supervisor restarts an embedded one, this restarts any other."""
        if server in self.servers:
            self.servers[server].kill()
            self.servers[server].start()
            return
        pid = self.pid(server)
        os.kill(pid, signal.SIGKILL)

    def down(self) -> None:
        """Stop everything but the source."""
        self.run("down")
        for server in reversed(self._others()):
            server.stop()

    def up(self) -> None:
        """Start everything that ``down`` stopped."""
        for server in self._others():
            server.start()
        self.run("up", "--detach")

    def _others(self) -> list[Server]:
        return [server for name, server in self.servers.items() if name != "postgres"]

    def processes(self) -> list[str]:
        """Return the processes with this state directory in environment or command line."""
        marker = str(self.state_dir)
        return [
            " ".join(process.cmdline())
            for process in psutil.process_iter()
            if process.pid != os.getpid() and _mentions(process, marker)
        ]


def _mentions(process: psutil.Process, marker: str) -> bool:
    try:
        return marker in " ".join(process.cmdline()) or marker in process.environ().values()
    except psutil.Error:
        return False


def hashable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the row in a hashable form, in which a NaN equals a NaN."""
    listed = (tuple(value) if isinstance(value, list) else value for value in row)
    return tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in listed)
