"""Whoever reads old versions for long holds them, until it is done or dead."""

import os
import time
from pathlib import Path

import pytest

from cdc.lake.upkeep import held as module
from cdc.lake.upkeep.held import DEAD_SECONDS, end_holds_of_job, held, oldest_hold
from tests.waiting import until


@pytest.fixture
def lake(tmp_path: Path) -> str:
    (tmp_path / "_wal2lake").mkdir()
    return str(tmp_path)


def holds(lake: str) -> list[Path]:
    folder = Path(lake) / "_wal2lake" / "held"
    return list(folder.iterdir()) if folder.exists() else []


def test_the_earliest_hold_counts_until_its_end(lake: str) -> None:
    assert oldest_hold(lake) is None
    with held(lake, 1000.5):
        with held(lake, 900):
            assert oldest_hold(lake) == 900
        assert oldest_hold(lake) == 1000.5
    assert oldest_hold(lake) is None
    assert holds(lake) == []


def test_a_hold_begins_now(lake: str) -> None:
    before = time.time()
    with held(lake):
        found = oldest_hold(lake)
        assert found is not None
        assert before - 1 < found <= time.time() + 1


def test_a_hold_ends_with_an_error_too(lake: str) -> None:
    with pytest.raises(KeyError), held(lake):
        raise KeyError
    assert holds(lake) == []


def test_a_hold_is_renewed_while_it_lasts(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RENEWED_SECONDS", 0.01)
    with held(lake, 1000):
        (file,) = holds(lake)
        os.utime(file, (1, 1))
        until(lambda: file.stat().st_mtime > 1)
        assert oldest_hold(lake) == 1000


def test_those_of_a_job_end_when_the_next_one_begins(lake: str) -> None:
    """Otherwise a job that was killed while it held something could forget nothing for minutes."""
    end_holds_of_job(lake)
    with held(lake, 1000), held(lake, 900, by_job=True):
        assert oldest_hold(lake) == 900
        end_holds_of_job(lake)
        assert oldest_hold(lake) == 1000


def test_that_of_a_dead_process_is_void(lake: str) -> None:
    with held(lake, 1000):
        (file,) = holds(lake)
        then = time.time() - DEAD_SECONDS - 60
        os.utime(file, (then, then))
        assert oldest_hold(lake) is None
        assert holds(lake) == []


def test_a_file_of_somebody_else_holds_everything(lake: str) -> None:
    folder = Path(lake) / "_wal2lake" / "held"
    folder.mkdir()
    (folder / "by hand").touch()
    assert oldest_hold(lake) == 0


def test_a_reader_that_may_not_write_reads_all_the_same(tmp_path: Path) -> None:
    with held(str(tmp_path / "no lake")):
        pass
    assert not (tmp_path / "no lake").exists()
