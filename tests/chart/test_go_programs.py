"""Where there is no Go, or one that is too old, that is said in one line."""

import stat
from pathlib import Path

import pytest

from cdc.errors import CdcError
from tools import go_programs


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(go_programs, "_USUAL", tmp_path / "none")
    return tmp_path


def go_that(path: Path, script: str) -> None:
    program = path / "go"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_no_go(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(path))

    assert go_programs.why_none() == "there is no Go: install 1.25 or newer"
    with pytest.raises(CdcError, match="there is no Go"):
        go_programs.run("version")


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("go1.24.9", "Go is 1.24.9: install 1.25 or newer"),
        ("go1.9", "Go is 1.9: install 1.25 or newer"),
        ("go1.25.0", None),
        ("go2.0", None),
    ],
)
def test_its_version_counts(path: Path, version: str, why: str | None) -> None:
    go_that(path, f"echo {version}")

    assert go_programs.why_none() == why


def test_what_fails_says_what_it_said(path: Path) -> None:
    go_that(path, "echo no such module >&2; exit 1")

    with pytest.raises(CdcError, match="go mod download failed") as error:
        go_programs.downloaded("a", "1", "Dir")
    assert error.value.detail == "no such module"
