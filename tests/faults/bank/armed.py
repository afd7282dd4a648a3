"""An installation whose job can be killed at a failpoint, and whose configuration is rewritten."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import psutil
import yaml

from cdc.failpoints import HELD, HOLD, VARIABLE, Failpoint
from cdc.stack.process.process import ProcessIdentity
from cdc.state.directory import StateDir
from tests.e2e.installation import Installation
from tests.servers.server import Server
from tests.waiting import until

NAME: Final = "wal2lake"  # of the pipeline, its slot, its group of workers and its connector
KILL_SECONDS: Final = 1800
SYNC_SECONDS: Final = "900"
JOB: Final = {"trigger_seconds": 0.2, "maintain_every_commits": 8, "optimize_small_files": 4}


class Armed(Installation):
    """All servers but the source are embedded; the variable reaches the job through ``up``."""

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
        """``through`` is an address by which the source is reached, where it is not its own."""
        found = cls(folder=folder, servers={"postgres": postgres})
        found.points.mkdir(parents=True)
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
        found.config_file.write_text(yaml.safe_dump(written))
        return found

    @property
    def lake(self) -> str:
        return str(self.folder / "lake")

    @property
    def points(self) -> Path:
        return self.folder / "failpoints"

    @property
    def config_file(self) -> Path:
        return self.folder / "wal2lake.yaml"

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {VARIABLE: str(self.points)}

    def arm(self, point: Failpoint, *, passes: int = 1) -> None:
        """The job dies when it gets there for the time of this number."""
        (self.points / point).write_text(str(passes))

    def hold(self, point: Failpoint) -> None:
        """The thread that gets there waits, until ``release``."""
        (self.points / point).write_text(HOLD)

    def is_held(self, point: Failpoint) -> bool:
        return (self.points / point).read_text() == HELD

    def release(self, point: Failpoint) -> None:
        (self.points / point).unlink()

    def is_armed(self, point: Failpoint) -> bool:
        return (self.points / point).exists()

    def await_kill(self, point: Failpoint) -> None:
        until(lambda: not self.is_armed(point), KILL_SECONDS)

    def configure(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Rewrite the file; the job reads it at its next start, or when it is told to."""
        written = yaml.safe_load(self.config_file.read_text())
        change(written)
        self.config_file.write_text(yaml.safe_dump(written))

    def assert_equal(self, *tables: str) -> None:
        """Those of the bank, and whatever was made in the schema ``gone``."""
        super().assert_equal(*tables)
        with self.connect() as connection:
            names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'gone'")
            for (name,) in names.fetchall():
                found = connection.execute(f"SELECT * FROM gone.{name}".encode())
                held = self.lake_query("gone", name, "SELECT * FROM t")
                assert Counter(found.fetchall()) == held, name

    def process(self, server: str) -> psutil.Process | None:
        """By the record of its start, there before ``status`` knows; None while it is down."""
        identity = ProcessIdentity.read(StateDir(self.state_dir).run / f"{server}.json")
        return None if identity is None else identity.process()

    def pid(self, server: str) -> int:
        found = self.process(server)
        assert found is not None, f"{server} is down"
        return found.pid

    def sync(self) -> None:
        self.run("sync", "--timeout", SYNC_SECONDS)
