from pathlib import Path

import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts import prerequisites


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("command not found", 0),
    ],
)
def test_the_version_of_java_is_parsed(text: str, major: int) -> None:
    assert prerequisites.java_major(text) == major


def java_that_says(place: Path, version: str) -> Path:
    binary = place / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    binary.chmod(0o755)
    return place


@pytest.mark.parametrize(("version", "fit"), [("11.0.2", False), ("17.0.1", True), ("25", False)])
def test_an_unfit_java_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, *, fit: bool
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_that_says(tmp_path / "jdk", version)))
    prerequisites.find_java.cache_clear()
    try:
        if fit:
            assert prerequisites.find_java().major == 17
            return
        with pytest.raises(CdcError) as caught:
            prerequisites.find_java()
    finally:
        prerequisites.find_java.cache_clear()
    assert caught.value.kind is ErrorKind.PREREQUISITE
    assert str(tmp_path / "jdk") in caught.value.message
    assert "17" in caught.value.remedy


def test_a_missing_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    prerequisites.find_java.cache_clear()
    try:
        with pytest.raises(CdcError, match="java is not installed"):
            prerequisites.check(tmp_path)
    finally:
        prerequisites.find_java.cache_clear()
