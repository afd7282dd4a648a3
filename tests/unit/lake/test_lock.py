"""Only one job can use a state directory or a lake at a time."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind
from cdc.lake import lock

HOLD = """
import signal, sys
from pathlib import Path
from cdc.config import load
from cdc.lake import lock
with lock.only_job(load(Path(sys.argv[1]), {})):
    print("held", flush=True)
    signal.pause()
"""


def config(folder: Path, lake: str) -> Config:
    folder.mkdir()
    (folder / "wal2lake.yaml").write_text(
        f"source: {{tables: [shop.*]}}\nlake: {{path: '{lake}'}}\n"
    )
    return load(folder / "wal2lake.yaml", {})


def test_a_second_job_on_a_lake_is_refused_until_the_first_has_ended_in_any_way(
    tmp_path: Path,
) -> None:
    lake = str(tmp_path / "lake")
    config(tmp_path / "one", lake)
    second = config(tmp_path / "two", lake)  # with its own state directory
    command = [sys.executable, "-c", HOLD, str(tmp_path / "one" / "wal2lake.yaml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(CdcError, match=f"another job is writing to the lake {lake}") as raised,
            lock.only_job(second),
        ):
            pass
        os.kill(holder.pid, signal.SIGKILL)

    assert raised.value.kind is ErrorKind.CONFLICT
    with lock.only_job(second):
        pass


def test_a_second_job_with_the_same_state_directory_is_refused(tmp_path: Path) -> None:
    first = config(tmp_path / "one", str(tmp_path / "lake"))
    other = first.model_copy(
        update={"lake": first.lake.model_copy(update={"path": str(tmp_path / "other")})}
    )

    with (
        lock.only_job(first),
        pytest.raises(CdcError, match="running with the state directory"),
        lock.only_job(other),
    ):
        pass
