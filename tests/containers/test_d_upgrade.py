"""An upgrade: the images of an earlier commit have a lake, and those of now go on with it."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.containers.stack import ROOT, stack_for
from tests.containers.writer import TABLES, fill, write
from tests.meanwhile import meanwhile

pytestmark = [pytest.mark.stack, pytest.mark.timeout(2400)]


def one_before() -> str:
    """Name the last commit whose images differ from those of now: the code of the job does."""
    newest = ["git", "log", "-1", "--format=%H", "--", "cdc"]
    found = subprocess.run(newest, cwd=ROOT, capture_output=True, text=True, check=False)
    return f"{found.stdout.strip() or 'HEAD'}~1"


def unpacked(commit: str, folder: Path) -> Path:
    """Unpack a commit of this repository into a folder, and return the folder."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"there is no commit {commit} here: {archive.stderr.decode().strip()}")
    folder.mkdir()
    subprocess.run(["tar", "--extract", "--directory", folder], input=archive.stdout, check=True)
    return folder


def test_the_images_of_now_go_on_under_load(tmp_path: Path) -> None:
    before = unpacked(one_before(), tmp_path / "before")
    with stack_for("wal2lake-upgrade", tmp_path, tree=before) as old:
        old.up("--build")
        old.execute(*TABLES, fill(50_000))
        old.assert_equal()
        image = old.container("job")["Image"]
        now = replace(old, tree=ROOT)
        with meanwhile(lambda: write(old), every=0.1):
            now.up("--build")

        now.assert_equal()
        assert now.container("job")["Image"] != image
