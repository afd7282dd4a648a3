"""Run scenarios against an installation, step by step and all at once, and read both sides."""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc.state import requests
from cdc.state.requests import Request
from tests.e2e.installation import Installation, hashable

STEP_BY_STEP: Final = 0
AT_ONCE: Final = 1
WAYS: Final = {"steps": STEP_BY_STEP, "batch": AT_ONCE}

Scripts = Callable[[int, int], Sequence[str]]
"""A function that returns a step's scripts, given its number and the way it is run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Laboratory:
    """Runs scenarios and reads the rows of the schema ``lab`` on both sides."""

    installation: Installation

    def run(self, steps: int, scripts: Scripts) -> None:
        """Run every step twice: with a ``sync`` after each, and all steps as one batch.

        A step begins once the connector has read the previous one.
        """
        for step in range(steps):
            self.execute(scripts(step, STEP_BY_STEP))
            self.sync()
        with self._held():
            for step in range(steps):
                self.execute(scripts(step, AT_ONCE))
                self._await_connector()
        self.sync()

    def sync(self) -> None:
        """Wait until all tables that are not stopped have caught up."""
        done = self.installation.done("sync", "--timeout", "900")
        assert done.returncode in {0, 8}, done.stderr

    def execute(self, scripts: Iterable[str]) -> None:
        """Execute the scripts' statements, each as its own transaction outside of BEGIN."""
        with self.installation.connect() as connection:
            # One by one, because statements sent together would be one transaction.
            for statement in ";".join(scripts).split(";"):
                if statement.strip():
                    connection.execute(statement.encode())

    def _await_connector(self) -> None:
        """Wait until the slot has confirmed the current WAL position; heartbeats advance it."""
        passed = "SELECT confirmed_flush_lsn >= %s FROM pg_replication_slots WHERE NOT temporary"
        with self.installation.connect() as connection:
            now = connection.execute("SELECT pg_current_wal_lsn()::text").fetchone()
            waiting = Retrying(
                retry=retry_if_result(lambda row: row != (True,)),
                wait=wait_fixed(0.2),
                stop=stop_after_delay(120),
            )
            waiting(lambda: connection.execute(passed.encode(), now).fetchone())

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Hold cuts back for the block, so that its changes form one batch."""
        folder = requests.directory(self.installation.state_dir)
        hold = Request(id=uuid.uuid4().hex, expires_at=time.time() + 300)
        requests.write(folder, hold)
        try:
            yield
        finally:
            requests.remove(folder, hold.id)

    def verdicts(self) -> dict[str, dict[str, Any]]:
        """Return the verdict of ``verify`` on every table."""
        printed = self.installation.any_facts("verify")
        return {verdict["table"]: verdict for verdict in printed["tables"]}

    def source(self, query: str) -> Counter[tuple[Any, ...]]:
        """Return the rows of a query in the source."""
        with self.installation.connect() as connection:
            return Counter(hashable(row) for row in connection.execute(query.encode()))

    def lake(self, table: str, query: str) -> Counter[tuple[Any, ...]]:
        """Return the rows of a query over ``t``, the table in the lake."""
        return self.installation.lake_query("lab", table, query)

    def names(self, table: str) -> str:
        """Return the columns of the source's table, quoted and in order."""
        query = (
            "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = "
            f"'lab.\"{table}\"'::regclass AND attnum > 0 AND NOT attisdropped"
        )
        with self.installation.connect() as connection:
            return ", ".join(name for (name,) in connection.execute(query.encode()))
