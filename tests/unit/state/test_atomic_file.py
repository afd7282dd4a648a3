"""A state file is replaced as a whole, or stays as it was."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cdc.state.atomic_file import write_private, write_private_bytes, write_shared


@pytest.mark.parametrize("write", [write_private, write_shared])
def test_a_file_is_replaced_and_nothing_else_is_left(
    tmp_path: Path, write: Callable[[Path, str], None]
) -> None:
    write(tmp_path / "a.json", "old")
    write(tmp_path / "a.json", "new")

    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.json", "new")]


def test_bytes_are_written_part_by_part(tmp_path: Path) -> None:
    write_private_bytes(tmp_path / "a", [b"old"])
    write_private_bytes(tmp_path / "a", [b"ne", memoryview(b"\xffw")])

    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"ne\xffw")]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_who_may_read_a_file(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_private(tmp_path / "private", "")
        write_shared(tmp_path / "shared", "")
    finally:
        os.umask(before)

    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "shared").stat().st_mode & 0o777 == 0o644


def test_a_write_that_fails_leaves_the_old_text_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_private(tmp_path / "a", "old")

    def full(_handle: int) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("cdc.state.atomic_file.os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_private(tmp_path / "a", "new")

    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "old")]
