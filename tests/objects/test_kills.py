"""Kill a process inside each commit without Spark: the store has the table of before or of after.

Whoever comes next goes on with it, and deletes the files that got into no version.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest
from deltalake import DeltaTable

from cdc.failpoints import VARIABLE, Failpoint
from cdc.lake.commit.committer import Committer
from cdc.lake.files.store_of import store_of
from cdc.lake.records.ledger import Ledger
from cdc.lake.upkeep.strays import delete_strays
from tests.objects.commit_paths import PATHS, combining_often, content
from tests.objects.test_commits import add, cut

ROOT: Final = Path(__file__).parents[2]
KILLED: Final = """
import os, sys
from pathlib import Path
from tests.objects.commit_paths import PATHS, combining_often
name, path, point = sys.argv[1:]
with combining_often():
    work = PATHS[name].begin(path)
    (Path(os.environ["WAL2LAKE_FAILPOINTS"]) / point).touch()
    work()
"""
SAMPLE: Final = (Failpoint.AFTER_VECTORS_WRITE, Failpoint.AFTER_ENTRY_PUT)
STEPS: Final[dict[str, tuple[str, ...]]] = {
    "committed": ("rows-write", "vectors-write", "entry-put"),
    "combined": ("combined-write", "entry-put"),
    "checkpointed": ("table-checkpoint",),
    "cleaned": ("file-expiry", "commit-expiry", "vacuum"),
    "published": ("control-optimize", "control-vacuum"),
    "late rows": ("late-commit",),
}
CASES: Final = [
    pytest.param(
        name,
        point,
        marks=[] if name == "committed" and point in SAMPLE else pytest.mark.deep,
        id=f"{name}-{point}",
    )
    for name, steps in STEPS.items()
    for step in steps
    for point in (Failpoint(f"before-{step}"), Failpoint(f"after-{step}"))
]


def killed(name: str, path: str, point: Failpoint, points: Path) -> None:
    """Do the work in a process that is killed at the point."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, name, path, point],
        env=os.environ | {VARIABLE: str(points), "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("name", "point"), CASES)
def test_a_kill_leaves_the_table_of_before_or_of_after(
    lake: str, tmp_path: Path, name: str, point: Failpoint
) -> None:
    way, path = PATHS[name], f"{lake}/shop/killed"
    with combining_often():
        work = way.begin(f"{lake}/shop/whole")
        before = content(f"{lake}/shop/whole", way.columns)
        work()
    after = content(f"{lake}/shop/whole", way.columns)

    killed(name, path, point, tmp_path)

    found = content(path, way.columns)
    assert before[0] <= found[0] <= after[0]
    assert set(before[2]) & set(after[2]) <= set(found[2]) <= set(before[2]) | set(after[2])
    if name == "committed":
        assert found == (after if point is Failpoint.AFTER_ENTRY_PUT else before)
    goes_on(name, path)


def goes_on(name: str, path: str) -> None:
    """Commit once more, and delete what got into no version."""
    held = content(path, PATHS[name].columns)
    if name == "published":
        Ledger(path).append(cut(9))
        assert content(path, "cut")[2] == [*held[2], (9,)]
        return
    if name == "late rows":
        return
    delete_strays(path, time.time() + 60)
    assert content(path, "id") == held
    add(Committer(path), 99)
    assert content(path, "id")[2] == [*held[2], (99,)]
    named = {uri.rpartition("/")[2] for uri in DeltaTable(path).file_uris()}
    assert named <= set(store_of(path).names(""))
