"""Runs an installation of wal2lake with all its servers, in a directory of its own."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

from bench.whole.code import OURS_NAME, Code, last_line
from bench.whole.tables import create
from cdc.config import Config, Connect, Kafka, Registry, Source, load
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.stack.embedded import running
from cdc.stack.process.stack_report import read
from cdc.state.directory import StateDir
from cdc.state.pipeline import resolve
from cdc.waiting import poll

NAME: Final = "bench"
_ELSEWHERE: Final = "http://127.0.0.1:1"  # never contacted: a configured server is not started


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Runs one installation by some code.

    ``snapshot`` says who reads the tables first, for code that leaves the choice.
    """

    root: Path
    code: Code
    snapshot: str = "copy"

    @property
    def config(self) -> Config:
        """Its configuration, as the code of this checkout reads it."""
        return load(self._file)

    @property
    def state(self) -> StateDir:
        """Its state directory."""
        return StateDir(self.root / "state")

    @property
    def source_url(self) -> str:
        """The address of its Postgres while it is up."""
        return resolve(self.config).endpoints.source_url

    @property
    def _file(self) -> Path:
        return self.root / "wal2lake.yaml"

    def create(self, *, tables: int, rows: int) -> None:
        """Write the configuration and fill so many tables in Postgres, before anything follows."""
        self.install(NAME, partial(create, tables=tables, rows=rows))

    def install(self, schema: str, fill: Callable[[str], None], **sections: object) -> None:
        """Write the configuration, and let ``fill`` make the tables of a schema in Postgres.

        ``sections`` are further ones of the configuration; ``fill`` gets the address of Postgres.
        """
        self.configure(schema, **sections)
        with self.postgres_alone() as url:
            fill(url)

    def configure(self, schema: str, **sections: object) -> None:
        """Write the configuration, for an installation that is down."""
        self.root.mkdir(parents=True, exist_ok=True)
        source: dict[str, Any] = {"tables": [f"{schema}.*"]}
        if self.code.name == OURS_NAME and "snapshot" in Source.model_fields:
            source["snapshot"] = self.snapshot
        own: dict[str, Any] = {
            "name": NAME,
            "source": source,
            "lake": {"path": str(self.root / "lake")},
            "state_dir": str(self.root / "state"),
            **sections,
        }
        self._file.write_text(yaml.safe_dump(own))

    @contextmanager
    def postgres_alone(self) -> Iterator[str]:
        """Run the embedded Postgres and nothing else; yields its address."""
        others = {
            "kafka": Kafka(bootstrap_servers=_ELSEWHERE),
            "connect": Connect(url=_ELSEWHERE),
            "registry": Registry(url=_ELSEWHERE),
        }
        with running(self.config.model_copy(update=others)) as endpoints:
            yield endpoints.source_url

    def command(self, *arguments: str) -> float:
        """Run a ``wal2lake`` command of the installation's code; return the seconds it took.

        Raises SERVER_FAILED unless it ends with 0.
        """
        began = time.monotonic()
        log = self.root / "commands.log"
        code = self.code.run([*arguments, "--config", str(self._file)], log)
        if code:
            raise CdcError(
                ErrorKind.SERVER_FAILED,
                f"wal2lake {arguments[0]} of {self.code.name} ended with exit code {code}",
                detail=f"see {log.name}: {last_line(log)}",
            )
        return time.monotonic() - began

    @contextmanager
    def up(self) -> Iterator[float]:
        """Run it; yields the seconds until it applied."""
        took = self.command("up", "--detach")
        try:
            yield took
        finally:
            self.command("down")

    def pids(self) -> dict[str, int]:
        """Return the running servers and the job, by name."""
        members = read(self.state).get("processes", {})
        return {name: member["pid"] for name, member in members.items() if member["pid"]}

    def last_cut(self) -> LedgerRow | None:
        """Return the newest cut."""
        return Ledger(ledger_path(self.config)).last()

    def await_cut(self, lsn: int, seconds: float) -> LedgerRow:
        """Return the first cut that is seen to reach the LSN; raises TIMEOUT."""
        ledger = Ledger(ledger_path(self.config))

        def reached() -> LedgerRow | None:
            last = ledger.last()
            if last is None or last.lsn is None or last.lsn < lsn:
                return None
            rows = ledger.newest(64)
            return next((r for r in rows if r.lsn is not None and r.lsn >= lsn), last)

        found = poll(reached, bool, every=0.2, seconds=seconds)
        if found is None:
            raise CdcError(ErrorKind.TIMEOUT, f"a commit was not readable after {seconds:.0f} s")
        return found
