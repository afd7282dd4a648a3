"""Cleaning a transaction log keeps every version that was the newest within the retention."""

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from cdc.lake.upkeep.old_versions import clean
from cdc.lake.upkeep.transaction_log import obsolete

SINCE = 1000.0
EVERY = 4  # delta-rs makes a checkpoint of every fourth commit
DAY = 24 * 3600


def named(version: int, end: str) -> str:
    return f"{version:020d}{end}"


def log(times: list[float], *checkpoints: int) -> dict[str, float]:
    """Write commits with these times, and checkpoints of some of them with the same times."""
    commits = {named(version, ".json"): at for version, at in enumerate(times)}
    return commits | {named(v, ".checkpoint.parquet"): times[v] for v in checkpoints}


def first_left(files: dict[str, float]) -> int:
    gone = obsolete(files, SINCE)
    return min(int(name[:20]) for name in files if name not in gone)


@pytest.mark.parametrize(
    ("times", "checkpoints", "first"),
    [
        ([], (), None),
        ([1, 2, 3], (), 0),
        ([1, 2, 2000], (2,), 0),  # version 1 was the newest until the last commit
        ([1, 2, 2000], (1, 2), 1),
        ([1, 2, 3, 2000, 2001], (1, 4), 1),
        ([1, 2, 3, 4], (3,), 3),  # even the newest version is old
        ([2000, 1, 2], (2,), 0),  # someone touched a file: nothing is certain
        ([1, 2, 2000, 1, 2001], (1, 3), 1),
    ],
)
def test_the_cleaned_log_begins_at_a_checkpoint(
    times: list[float], checkpoints: tuple[int, ...], first: int | None
) -> None:
    files = log(times, *checkpoints)

    assert (first_left(files) if files else None) == first


def test_checksums_are_removed_with_their_commit_and_other_files_stay() -> None:
    files = log([1, 2, 3], 2)
    gone = [name for name in files if not name.startswith(named(2, ""))]
    sums = [f".{gone[0]}.crc", named(1, ".crc"), f".{named(1, '.crc')}.crc"]
    kept = ["_last_checkpoint", "._last_checkpoint.crc", "_staged_commits", named(2, ".crc")]

    assert sorted(obsolete(files | dict.fromkeys(sums + kept, 1.0), SINCE)) == sorted(gone + sums)


def test_the_log_never_begins_at_a_checkpoint_in_several_parts() -> None:
    parts = [f".checkpoint.{n:010d}.{2:010d}.parquet" for n in (1, 2)]
    files = log([1, 2, 3]) | {named(2, part): 3.0 for part in parts}

    assert obsolete(files, SINCE) == []


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a table of versions 0 to 13, each with one row more than the one before."""
    path = tmp_path_factory.mktemp("lake") / "table"
    settings = {"delta.enableExpiredLogCleanup": "false", "delta.checkpointInterval": str(EVERY)}
    for number in range(14):
        write_deltalake(path, pa.table({"id": [number]}), mode="append", configuration=settings)
    return path


@given(old=st.integers(0, 14))
def test_delta_opens_the_version_that_was_the_newest_and_all_later(table: Path, old: int) -> None:
    """Test any number of old versions, written and read by delta-rs."""
    files = {file.name: file for file in (table / "_delta_log").iterdir()}
    now = time.time()
    for name, file in files.items():
        is_old = name[:20].isdecimal() and int(name[:20]) < old
        os.utime(file, (now, now - 2 * DAY if is_old else now))
    saved = {name: file.read_bytes() for name, file in files.items()}
    try:
        clean(str(table), now - DAY)
        left = [int(file.stem) for file in (table / "_delta_log").glob("*.json")]
        assert len(left) <= 14 - old + EVERY + 1
        for version in range(max(old - 1, 0), 14):
            assert len(DeltaTable(table, version=version).file_uris()) == version + 1
    finally:
        for name, content in saved.items():
            files[name].write_bytes(content)
