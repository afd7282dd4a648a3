"""The figures of a long run are summarized, and those that are too large are reported."""

import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc.config import Job
from cdc.lake.upkeep.control_tables import FILES
from cdc.lake.upkeep.small_files import TIERS
from tests.soak.flatness import (
    FILES_PER_ROUND,
    SLACK,
    Sample,
    TableSample,
    judged,
    most_files,
    opened,
    report,
    too_many,
)
from tests.soak.sampler import sampled

POLICY = Job(maintain_every_commits=8, optimize_small_files=4)
TABLE = TableSample(
    table="bank.ring",
    control=False,
    files=3,
    large=0,
    rounds=20,
    log_bytes=4096,
    opened_bytes=1024,
    seconds=0.5,
)
LEDGER = replace(TABLE, table="ledger", control=True, files=FILES, rounds=0, seconds=1.5)
MOST = 3 + TIERS + FILES_PER_ROUND * (8 + SLACK)


def sample(at: float, *tables: TableSample, lives: int = 1) -> Sample:
    return Sample(at=at, lives=lives, rss=2**30, disk=2**29, tables=tables or (TABLE, LEDGER))


def test_a_table_is_bounded_once_the_job_has_counted_its_files() -> None:
    assert most_files(TABLE, POLICY, 1) == MOST
    assert most_files(replace(TABLE, rounds=8 + SLACK - 1), POLICY, 1) is None
    assert most_files(replace(TABLE, large=2), POLICY, 1) == MOST + 2


def test_the_log_is_counted_as_a_table_and_other_control_tables_at_each_commit() -> None:
    assert most_files(replace(LEDGER, table="log", rounds=20), POLICY, 5) == MOST
    assert most_files(LEDGER, POLICY, 5) == FILES + TIERS + 5


@pytest.mark.parametrize(
    ("found", "names"),
    [
        (TABLE, []),
        (replace(TABLE, files=MOST), []),
        (replace(TABLE, files=MOST + 1), ["bank.ring"]),
        (replace(TABLE, files=MOST + 1, rounds=1), []),
        (replace(LEDGER, files=FILES + TIERS + 2), ["ledger"]),
    ],
)
def test_more_files_than_there_may_be_are_seen(found: TableSample, names: list[str]) -> None:
    said = list(too_many([sample(30.0, found)], POLICY))

    assert [text.partition(" ")[0] for text in said] == names


def test_only_tables_with_a_bound_are_counted() -> None:
    young = replace(TABLE, rounds=2)

    assert judged([sample(0), sample(30), sample(60, young, LEDGER)], POLICY) == 2


def test_a_reader_opens_the_newest_checkpoint_and_what_is_behind_it() -> None:
    sizes = {f"{number:020}.json": 10 for number in range(43)}
    sizes |= {f"{number:020}.checkpoint.parquet": 1000 + number for number in (20, 40)}
    sizes |= {"_last_checkpoint": 7, f"{42:020}.crc": 10}

    assert opened(sizes) == 1040 + 2 * 10
    assert opened({f"{0:020}.json": 5}) == 5
    assert opened({}) == 0


def test_the_report_has_the_median_of_each_quarter() -> None:
    files = [2, 4, 9, 5]
    samples = [
        sample(at, replace(TABLE, files=files[at // 100]), TABLE, LEDGER)
        for at in range(0, 400, 50)
    ]

    lines = report([*samples, sample(400)]).splitlines()

    assert len(lines) == 2 + 2 * 4
    assert lines[2] == "| bank | 1 | 2 | 3 | 2.5 | 8 | 2 | 1.00 | 1024 | 512 |"
    assert lines[4] == "| bank | 3 | 2 | 9 | 6.0 | 8 | 2 | 1.00 | 1024 | 512 |"
    assert lines[9] == f"| _wal2lake | 4 | 3 | {FILES} | {FILES}.0 | 4 | 1 | 1.50 | 1024 | 512 |"


def test_a_quarter_without_samples_has_no_figures() -> None:
    lines = report([sample(0), sample(400)]).splitlines()

    assert lines[3] == "| bank | 2 | 0 | - | - | - | - | - | - | - |"
    assert len(report([]).splitlines()) == 2 + 2 * 4


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for number in range(3):
        write_deltalake(str(tmp_path), pa.table({"id": [number]}), mode="append")
    DeltaTable(str(tmp_path)).optimize.compact()
    return tmp_path


def test_a_table_is_looked_at(table: Path) -> None:
    found = sampled("bank.ring", table, 2, calm_since=0.0)

    assert (found.control, found.files, found.large, found.rounds) == (False, 3, 0, 3)
    assert found.log_bytes == found.opened_bytes > 0
    assert sampled("log", table, None, calm_since=0.0).files == 1


def test_commits_count_only_since_all_is_calm(table: Path) -> None:
    assert sampled("bank.ring", table, None, calm_since=time.time() + 1).rounds == 0
    assert sampled("bank.ring", table, None, calm_since=None).rounds == 0
