"""An installation whose job can be killed at failpoints and whose configuration can be changed."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
import yaml

from cdc.failpoints import HELD, HOLD, VARIABLE, Failpoint
from cdc.stack.process.process import ProcessIdentity
from cdc.state.directory import StateDir
from tests.e2e.installation import Installation
from tests.servers.server import Server
from tests.waiting import until

NAME: Final = "wal2lake"  # of the pipeline, slot, worker group and connector
KILL_SECONDS: Final = 1800
SYNC_SECONDS: Final = "900"
JOB: Final = {"freshness_seconds": 0.8, "maintain_every_commits": 8, "optimize_small_files": 4}


def job_of(config: pytest.Config, job: Mapping[str, float] = JOB) -> dict[str, float]:
    """Return the job's section, with what the options of the test run add to it."""
    return {**job, **({"local_events": 0} if config.getoption("--merge-alone") else {})}


class Armed(Installation):
    """Adds failpoints to an installation; ``up`` passes their variable to the job.

    All servers but the source are embedded.
    """

    @classmethod
    def of(
        cls,
        folder: Path,
        postgres: Server,
        tables: list[str],
        *,
        through: str | None = None,
        job: Mapping[str, float] = JOB,
    ) -> "Armed":
        """Write a configuration for the folder; ``through`` replaces the source's own address."""
        installation = cls(folder=folder, servers={"postgres": postgres})
        installation.points.mkdir(parents=True)
        written = {
            "source": {
                "url": through or postgres.address,
                "tables": tables,
                "append_only": ["bank.audit"],
            },
            "lake": {"path": "lake"},
            "spark": {"master": "local[2]", "driver_memory": "1500m"},
            "job": dict(job),
        }
        installation.config_file.write_text(yaml.safe_dump(written))
        return installation

    @property
    def lake(self) -> str:
        """Return the lake's path."""
        return str(self.folder / "lake")

    @property
    def points(self) -> Path:
        """Return the directory with a file for each armed failpoint."""
        return self.folder / "failpoints"

    @property
    def config_file(self) -> Path:
        """Return the path of the configuration file."""
        return self.folder / "wal2lake.yaml"

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of commands, with the failpoints' directory."""
        return super().environment | {VARIABLE: str(self.points)}

    def arm(self, point: Failpoint, *, passes: int = 1) -> None:
        """Kill the job when it reaches the failpoint for the ``passes``-th time."""
        (self.points / point).write_text(str(passes))

    def hold(self, point: Failpoint) -> None:
        """Make the thread that reaches the failpoint wait until ``release``."""
        (self.points / point).write_text(HOLD)

    def is_held(self, point: Failpoint) -> bool:
        """Return whether a thread waits at the failpoint."""
        return (self.points / point).read_text() == HELD

    def release(self, point: Failpoint) -> None:
        """Let the waiting thread continue."""
        (self.points / point).unlink()

    def is_armed(self, point: Failpoint) -> bool:
        """Return whether the failpoint is set and has not killed the job yet."""
        return (self.points / point).exists()

    def await_kill(self, point: Failpoint) -> None:
        """Wait until the failpoint has killed the job."""
        until(lambda: not self.is_armed(point), KILL_SECONDS)

    def configure(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Rewrite the configuration; the job reads it at its next start or on ``apply-config``."""
        written = yaml.safe_load(self.config_file.read_text())
        change(written)
        self.config_file.write_text(yaml.safe_dump(written))

    def assert_equal(self, *tables: str) -> None:
        """Compare the named tables of the bank and every table of the schema ``gone``."""
        super().assert_equal(*tables)
        with self.connect() as connection:
            names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'gone'")
            for (name,) in names.fetchall():
                in_source = connection.execute(f"SELECT * FROM gone.{name}".encode())
                in_lake = self.lake_query("gone", name, "SELECT * FROM t")
                assert Counter(in_source.fetchall()) == in_lake, name

    def process(self, server: str) -> psutil.Process | None:
        """Find the process by the record of its start, before ``status`` does; None while down."""
        identity = ProcessIdentity.read(StateDir(self.state_dir).run / f"{server}.json")
        return None if identity is None else identity.process()

    def pid(self, server: str) -> int:
        """Return the pid of a process that must be running."""
        process = self.process(server)
        assert process is not None, f"{server} is down"
        return process.pid

    def sync(self) -> None:
        """Run ``wal2lake sync`` with a timeout for a slow machine."""
        self.run("sync", "--timeout", SYNC_SECONDS)
