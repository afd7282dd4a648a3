"""Compiles our Java classes at installation, by the compiler that Spark brings: a JRE suffices."""

import os
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from cdc.errors import CdcError, ErrorKind

_COMPILE: Final = "Compile.java"
_SECONDS: Final = 120


def source_bytes(*sources: str) -> bytes:
    """Return the sources by which classes are made, so that a digest of them tells a change."""
    folder = files("cdc.stack.artifacts") / "java"
    return b"".join((folder / name).read_bytes() for name in (*sources, _COMPILE))


def spark_jars_named(*patterns: str) -> list[Path]:
    """Return jars that pyspark brings, without importing it, which would take a second."""
    spec = find_spec("pyspark")
    places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    return [jar for place in places for name in patterns for jar in place.glob(f"jars/{name}")]


def build_jar(
    sources: Sequence[str],
    jar: Path,
    *,
    class_path: Sequence[Path],
    java: Path,
    entries: Mapping[str, str] | None = None,
) -> None:
    """Make a jar of the classes in ``sources``, and of these text files by name.

    ``java`` is the program that compiles. Raises INTERNAL if the classes do not compile.
    """
    with tempfile.TemporaryDirectory() as classes:
        _compile(sources, Path(classes), class_path, java)
        with zipfile.ZipFile(jar, "w") as made:
            for name, text in (entries or {}).items():
                made.writestr(name, text)
            for path in sorted(Path(classes).rglob("*.class")):
                made.write(path, path.relative_to(classes))


def _compile(names: Sequence[str], classes: Path, class_path: Sequence[Path], java: Path) -> None:
    compiler = spark_jars_named("janino-*.jar", "commons-compiler-*.jar")
    with as_file(files("cdc.stack.artifacts") / "java") as sources:
        command = [str(java), "-cp", os.pathsep.join(map(str, compiler))]
        command += ["org.codehaus.janino.SimpleCompiler", str(sources / _COMPILE), "Compile"]
        given = [[sources / name for name in names], [classes], class_path]
        command += [os.pathsep.join(map(str, paths)) for paths in given]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    if done.returncode or not any(classes.rglob("*.class")):
        raise CdcError(
            ErrorKind.INTERNAL,
            f"{' or '.join(names)} does not compile",
            detail=done.stderr.strip()[-300:],
            remedy="report this as a bug, with the version of Java",
        )
