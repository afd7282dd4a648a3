"""``wal2lake check`` prints a few lines, whatever the number of tables."""

from pathlib import Path

import pytest

from cdc.cli.check import folded, summary
from cdc.client import check
from cdc.config import Config
from cdc.source.server.finding import Finding, Level


def test_equal_warnings_are_one_line() -> None:
    columns = [Finding.warning(f"s.t{i}.c", "will not arrive: money") for i in range(52)]
    fit = [Finding.ok(f"s.t{i}", "key id; 1 of 2 columns arrive") for i in range(52)]
    bad = Finding.error("s.x", "has no key", remedy="add one")

    lines = folded([*fit, *columns, bad, Finding.warning("a", "b")])

    assert lines[0] == bad
    assert [line.subject for line in lines[1:]] == ["s.t0.c, s.t1.c, s.t2.c and 49 more", "a"]
    assert summary([*fit, *columns, bad], verbose=False).startswith("1 error, 52 warnings, 52 ok")


def test_a_few_equal_warnings_name_every_subject() -> None:
    found = [Finding.warning(name, "m", remedy="r") for name in ("a", "b", "c")]

    assert folded(found) == [Finding.warning("a, b, c", "m", remedy="r")]


def test_every_error_has_its_line() -> None:
    found = [Finding.error(name, "m") for name in ("a", "b")]

    assert folded(found) == found


def config(folder: Path, **places: object) -> Config:
    given = {"lake": {"path": str(folder / "lake")}, "state_dir": folder / "state"} | places
    return Config.model_validate({"source": {"tables": ["s.t"]}} | given)


def disk(found: Config) -> dict[str, Finding]:
    return {finding.subject: finding for finding in check._disk(found)}


def test_a_lake_below_a_file_is_refused_with_the_file_s_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    found = disk(config(tmp_path, lake={"path": str(tmp_path / "file" / "lake")}))

    assert found["lake.path"].level is Level.ERROR
    assert found["lake.path"].message == f"{tmp_path / 'file'} is not a directory"
    assert found["state_dir"].level is not Level.ERROR


def test_a_file_system_that_keeps_no_files_is_not_called_full(tmp_path: Path) -> None:
    found = disk(config(tmp_path, lake={"path": "/proc/lake"}))

    assert found["lake.path"].level is Level.ERROR
    assert "cannot be written" in found["lake.path"].message
    assert "GiB" not in found["lake.path"].message


def test_a_directory_without_write_permission_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write everywhere, so the answer that access(2) gives other users is faked.
    monkeypatch.setattr("os.access", lambda path, _mode: Path(path) != tmp_path)

    found = disk(config(tmp_path))

    assert found["lake.path"].message.endswith(f"this user has no write permission on {tmp_path}")
