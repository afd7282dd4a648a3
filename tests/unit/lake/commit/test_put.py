"""Putting files: durable, whole, and an entry only if there is none."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.put import put_entry
from cdc.lake.files.local import LocalStore

Calls = list[tuple[str, str]]
ENTRY = "_delta_log/00000000000000000007.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "_delta_log").mkdir()
    return tmp_path


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Record what is synced and linked, in order, by name."""
    found: Calls = []
    fsync, link = os.fsync, os.link

    def synced(descriptor: int) -> None:
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        found.append(("fsync", name))
        fsync(descriptor)

    def linked(source: Path, target: Path) -> None:
        found.append(("link", target.name))
        link(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", linked)
    return found


def test_a_file_is_on_the_disk_before_its_name_is(folder: Path, calls: Calls) -> None:
    store = LocalStore(folder)

    store.write("a", b"1")
    store.settle()

    assert calls == [("fsync", "a"), ("fsync", folder.name)]
    assert store.read("a") == b"1"


def test_an_entry_is_synced_before_it_is_linked_and_its_directory_after(
    folder: Path, calls: Calls
) -> None:
    LocalStore(folder).put_if_absent(ENTRY, b"1")

    (first, name), *rest = calls
    assert (first, name.endswith(".tmp")) == ("fsync", True)
    assert rest == [("link", Path(ENTRY).name), ("fsync", "_delta_log")]
    assert [path.name for path in (folder / "_delta_log").iterdir()] == [Path(ENTRY).name]


def test_an_entry_that_is_there_is_a_conflict(folder: Path) -> None:
    store = LocalStore(folder)
    put_entry(store, 7, "first")

    with pytest.raises(CdcError, match=r"version 7 of .* is there already") as raised:
        put_entry(store, 7, "second")

    assert raised.value.kind is ErrorKind.CONFLICT
    assert store.read(ENTRY) == b"first"
    assert len(list((folder / "_delta_log").iterdir())) == 1


def test_a_file_is_never_overwritten(folder: Path) -> None:
    store = LocalStore(folder)
    store.write("a", b"first")

    with pytest.raises(FileExistsError):
        store.write("a", b"second")

    assert store.read("a") == b"first"


@pytest.mark.parametrize(
    "put", [lambda s: s.write("a", b"1"), lambda s: s.put_if_absent(ENTRY, b"1")]
)
def test_nothing_is_left_of_what_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, put: Callable[[LocalStore], None]
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    with pytest.raises(OSError, match="No space"):
        put(LocalStore(folder))

    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_a_disk_without_hard_links_is_left_to_spark(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unable(*_: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", unable)

    with pytest.raises(TakeMergeError, match="no hard links"):
        put_entry(LocalStore(folder), 7, "1")
