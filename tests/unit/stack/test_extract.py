"""Archives are unpacked by every Python that the README names."""

import io
import tarfile
from pathlib import Path

import pytest

from cdc.stack.artifacts.install import _extract


@pytest.fixture
def archive(tmp_path: Path) -> tarfile.TarFile:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as written:
        member = tarfile.TarInfo("worker/readme")
        member.size = 5
        written.addfile(member, io.BytesIO(b"hello"))
    return tarfile.open(tmp_path / "a.tar.gz")


def unpacked(archive: tarfile.TarFile, folder: Path) -> str:
    with archive:
        _extract(archive, folder)
    return (folder / "worker" / "readme").read_text()


def test_it_is_unpacked(archive: tarfile.TarFile, tmp_path: Path) -> None:
    assert unpacked(archive, tmp_path) == "hello"


def test_a_python_without_filters_unpacks_it_too(
    archive: tarfile.TarFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian 12 has Python 3.11.2, whose ``extractall`` knows no filter."""

    def extractall(self: tarfile.TarFile, path: Path) -> None:
        for member in self:
            self._extract_member(member, str(path / member.name))

    monkeypatch.delattr(tarfile, "data_filter")
    monkeypatch.setattr(tarfile.TarFile, "extractall", extractall)

    assert unpacked(archive, tmp_path) == "hello"
