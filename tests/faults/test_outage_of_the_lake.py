"""Take the lake away for ten minutes under load: the source keeps no more WAL because of it.

The slot waits for Kafka, not for the lake: the connector continues, and so does the slot. The lake
is away because the whole job is suspended, or because its disk is full. The report also shows the
size of the WAL directory, most of which Postgres keeps between two checkpoints anyway.
"""

import statistics
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from errno import ENOSPC
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

import cdc
from tests.faults.bank.armed import Armed
from tests.faults.bank.bank import TABLES, at_work
from tests.faults.bank.readers import recovered
from tests.faults.bank.walk import Walk
from tests.faults.conftest import written
from tests.faults.scenes.disturbances import frozen
from tests.meanwhile import meanwhile
from tests.servers.fixtures import on_containers
from tests.small_disk import fill, small_disk

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(5400)]

MINUTES: Final = 10
SAMPLE_SECONDS: Final = 5.0
DISK: Final = "1g"
WIDE: Final = 10
WIDE_SECONDS: Final = 0.25
SQL: Final = f"""
CREATE TABLE bank.wide (id int PRIMARY KEY, body text);
INSERT INTO bank.wide SELECT i, '' FROM generate_series(1, {WIDE}) i;
"""
_WIDEN: Final = """
UPDATE bank.wide w SET body = (
    SELECT string_agg(md5(random()::text || i || w.id), '') FROM generate_series(1, 256) i)
"""
"""Eight kilobytes a row that hardly compress: 320 KB/s of WAL, including the bank's own."""
_SAMPLE: Final = """
SELECT (pg_current_wal_lsn() - '0/0')::bigint, (pg_current_wal_lsn() - restart_lsn)::bigint,
       (pg_current_wal_lsn() - confirmed_flush_lsn)::bigint,
       (SELECT sum(size) FROM pg_ls_waldir())::bigint
  FROM pg_replication_slots WHERE slot_name = 'wal2lake'
"""
KEPT_SECONDS: Final = 15 + 15 + 5 + 5
"""Seconds of WAL that a slot may retain while its reader follows. Its restart LSN moves only to a
place that Postgres noted (every 15 s), and only when the next one is confirmed; the worker commits
its position every 5 s, and a heartbeat comes every 5 s."""
SLACK: Final = 3
"""A machine with two cores is late with all of these, and at times writes faster."""
Outage = Callable[[Armed], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Sample:
    """Sizes in bytes at one moment; ``written`` is the position in the WAL."""

    written: int
    retained: int
    unconfirmed: int
    directory: int


@dataclass(slots=True)
class Samples:
    """Takes the samples of one outage, and keeps them in order."""

    connection: psycopg.Connection[Any]
    taken: list[Sample] = field(default_factory=list)

    def take(self) -> None:
        """Add a sample of the slot and the WAL directory."""
        row = self.connection.execute(_SAMPLE).fetchone()
        assert row is not None, "the slot is gone"
        self.taken.append(Sample(*map(int, row)))

    @property
    def written(self) -> int:
        """Return the bytes of WAL written between the first and the last sample."""
        return self.taken[-1].written - self.taken[0].written

    @property
    def bound(self) -> int:
        """The most bytes of WAL that the slot may retain."""
        return int(self.written / (MINUTES * 60) * KEPT_SECONDS * SLACK)

    @property
    def settled(self) -> list[int]:
        """Return the bytes retained at each sample of the second half."""
        return [sample.retained for sample in self.taken[len(self.taken) // 2 :]]


@contextmanager
def standing_still(bank: Armed) -> Iterator[None]:
    with frozen(bank, "job"):
        yield


@contextmanager
def disk_full(bank: Armed) -> Iterator[None]:
    """Fill the lake's disk: the job ends and restarts in vain; blocks it frees are filled too."""
    disk = bank.folder / "lake"
    ballast = [disk / "ballast"]

    def fill_up() -> None:
        ballast.append(disk / f"ballast-{len(ballast)}")
        fill_quietly(ballast[-1])

    fill_quietly(ballast[0])
    try:
        with meanwhile(fill_up, every=SAMPLE_SECONDS):
            yield
    finally:
        for file in ballast:
            file.unlink(missing_ok=True)


def fill_quietly(ballast: Path) -> None:
    """Fill the disk; the job may take the last block first."""
    try:
        fill(ballast)
    except OSError as error:
        if error.errno != ENOSPC:
            raise


OUTAGES: Final[dict[str, Outage]] = {"job stands still": standing_still, "disk full": disk_full}


@pytest.fixture
def wide(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Armed]:
    if on_containers(request):
        pytest.skip("the job's disk is one of this machine")
    with written(request, tmp_path) as bank, small_disk(bank.folder / "lake", DISK):
        bank.execute(SQL)
        try:
            bank.run("up", "--detach")
            bank.sync()
            yield bank
        finally:
            bank.run("down")


def widening(connection: psycopg.Connection[Any]) -> Callable[[], object]:
    return lambda: connection.execute(_WIDEN)


def sampled(bank: Armed, outage: Outage) -> Samples:
    """Sample the WAL while the lake is away; fail if the lake kept up at the end."""
    with bank.connect() as connection, outage(bank):
        samples = Samples(connection)
        samples.take()
        with meanwhile(samples.take, every=SAMPLE_SECONDS):
            threading.Event().wait(MINUTES * 60)  # the length of the outage; nothing to await
        samples.take()
        behind = samples.taken[-1].written - (cdc.cut(lake=bank.lake).lsn or 0)
    assert behind > samples.written * 0.8, "the lake was not away"
    return samples


def report_line(name: str, samples: Samples, seconds: float) -> str:
    retained = [sample.retained for sample in samples.taken]
    return (
        f"| {name} | {samples.written >> 10} KB of WAL | retained: maximum {max(retained) >> 10}, "
        f"median {int(statistics.median(retained)) >> 10}, second half {max(samples.settled) >> 10}"
        f", bound {samples.bound >> 10} KB | not confirmed: at most "
        f"{max(sample.unconfirmed for sample in samples.taken) >> 10} KB | directory: at most "
        f"{max(sample.directory for sample in samples.taken) >> 20} MB | caught up in "
        f"{seconds:.0f} s |"
    )


@pytest.mark.parametrize("name", OUTAGES)
def test_the_source_keeps_little_wal_while_the_lake_is_away(wide: Armed, name: str) -> None:
    walk = Walk(wide)
    walk.note()
    with (
        wide.connect() as connection,
        at_work(wide, walk.commits, seed=list(OUTAGES).index(name)),
        meanwhile(widening(connection), every=WIDE_SECONDS),
    ):
        samples = sampled(wide, OUTAGES[name])
        seconds = recovered(wide)
    wide.sync()
    wide.assert_equal(*TABLES, "wide")
    assert wide.facts("verify")["equal"]
    walk.go_on()

    sys.stdout.write(f"\n{report_line(name, samples, seconds)}\n")
    assert all(before.written < after.written for before, after in pairwise(samples.taken))
    assert max(samples.settled) <= samples.bound < samples.written / 4
