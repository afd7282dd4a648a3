"""Sample the lake's tables and the job's memory while a walk runs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

import cdc
from cdc.client.status import components
from cdc.lake.table.positions import file_sizes
from cdc.lake.upkeep.small_files import SMALL_BYTES
from tests.faults.bank.armed import Armed
from tests.soak.flatness import Sample, TableSample, opened

EVERY_SECONDS: Final = 30.0
_COUNTED: Final = frozenset({"MERGE", "WRITE"})
"""Delta's operations for commits of rows; maintenance has other names."""
_HISTORY: Final = 60  # commits; more than between two counts of files


@dataclass
class Sampler:
    """Takes samples; call ``look`` every second, so that it notices every start of the job."""

    bank: Armed
    samples: list[Sample] = field(default_factory=list)
    lives: int = 0
    _began: float = field(default_factory=time.time)
    _pid: int | None = None
    _alive_since: float = 0.0
    _calm_since: float = 0.0
    _disturbed: bool = False

    @contextmanager
    def other_commits(self) -> Iterator[None]:
        """Mark the block as disturbed: operations commit too, and a reload counts commits anew."""
        self._disturbed = True
        yield
        self._calm_since = time.time()
        self._disturbed = False

    def look(self) -> None:
        """Note a start of the job; take a sample if the last is old enough."""
        self._notice_the_job()
        last = self.samples[-1].at if self.samples else -EVERY_SECONDS
        if time.time() - self._began - last >= EVERY_SECONDS:
            self.take()

    def take(self) -> None:
        """Take a sample."""
        calm = None if self._disturbed else max(self._calm_since, self._alive_since)
        began = time.time() - self._began
        tables = (sampled(*place, calm_since=calm) for place in self._places())
        sample = Sample(
            at=began,
            lives=self.lives,
            rss=self._resident(),
            disk=psutil.disk_usage(self.bank.lake).used,
            tables=tuple(tables),
        )
        self.samples.append(sample)

    def _notice_the_job(self) -> None:
        servers = components.servers(self.bank.state_dir)
        pid = next((server.pid for server in servers if server.name == "job"), None)
        if pid not in {None, self._pid}:
            self._pid, self.lives, self._alive_since = pid, self.lives + 1, time.time()

    def _places(self) -> Iterator[tuple[str, Path, int | None]]:
        """Yield (name, path, version) of the bank's tables at the newest cut and control tables."""
        lake = self.bank.folder / "lake"
        for entry in cdc.cut(lake=lake).tables:
            if entry.table.startswith("bank.") and entry.version >= 0:
                yield entry.table, Path(entry.path), entry.version
        for log in sorted((lake / "_wal2lake").glob("*/_delta_log")):
            yield log.parent.name, log.parent, None

    def _resident(self) -> int | None:
        """Return the resident bytes of the job's Java process."""
        with suppress(psutil.Error):
            children = psutil.Process(self._pid).children(recursive=True) if self._pid else []
            sizes = [c.memory_info().rss for c in children if "java" in c.name()]
            return max(sizes, default=None)
        return None


def sampled(
    table: str, path: Path, version: int | None, *, calm_since: float | None
) -> TableSample:
    """Sample one table; ``version`` is None for a control table, which is in no cut."""
    began = time.monotonic()
    opened_table = DeltaTable(str(path), version=version)
    rows = QueryBuilder().register("t", opened_table).execute("SELECT * FROM t").read_all()
    assert pa.table(rows).num_columns > 0
    seconds = time.monotonic() - began
    sizes = file_sizes(opened_table)
    log = _sizes(path / "_delta_log")
    return TableSample(
        table=table,
        control=version is None,
        files=len(sizes),
        large=sum(size >= SMALL_BYTES for size in sizes),
        rounds=0 if calm_since is None else _rounds(opened_table, calm_since),
        log_bytes=sum(log.values()),
        opened_bytes=opened(log),
        seconds=seconds,
    )


def _rounds(opened_table: DeltaTable, calm_since: float) -> int:
    commits = opened_table.history(_HISTORY)
    return sum(
        commit["operation"] in _COUNTED and commit["timestamp"] / 1000 >= calm_since
        for commit in commits
    )


def _sizes(folder: Path) -> dict[str, int]:
    """Return file sizes by name; a file may disappear while they are listed."""
    sizes = {}
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            sizes[path.name] = path.stat().st_size
    return sizes
