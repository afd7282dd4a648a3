"""Builds the Avro converter's plugin folder: Apicurio's jars, and classes of ours that extend it.

They are compiled during installation by the Java compiler that Spark brings, so a JRE suffices.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from cdc.errors import CdcError, ErrorKind

FOLDER: Final = "apicurio-converter"
CLASS: Final = "wal2lake.NullKeepingAvroConverter"
BASE: Final = "io.apicurio.registry.utils.converter.AvroConverter"
"""Connectors of earlier versions name this class; the worker must know it to answer at all."""
MASKING: Final = "wal2lake.MaskingAvroConverter"
"""Used where ``source.columns`` names columns."""
_SOURCES: Final = ("NullKeepingAvroConverter.java", "MaskingAvroConverter.java")
_COMPILE: Final = "Compile.java"
_SERVICE: Final = "META-INF/services/org.apache.kafka.connect.storage.Converter"
_SECONDS: Final = 120


def digest() -> str:
    """Return a digest of the Java sources, so that a change of them makes a new installation."""
    texts = (
        (files("cdc.stack.artifacts") / "java" / name).read_bytes()
        for name in (*_SOURCES, _COMPILE)
    )
    return hashlib.sha256(b"".join([*texts, BASE.encode()])).hexdigest()


def build_plugin(jars: Path, target: Path, *, worker: Sequence[Path], java: Path) -> None:
    """Build the plugin folder below ``target`` from Apicurio's ``jars``.

    ``worker`` are the jars of Kafka Connect, ``java`` the program that compiles. The service file
    spares the worker a scan of all class files, which takes ten seconds of every start. Raises
    INTERNAL if the classes do not compile.
    """
    folder = target / FOLDER
    shutil.copytree(jars, folder)
    with tempfile.TemporaryDirectory() as classes:
        _compile(Path(classes), [*worker, *sorted(folder.glob("*.jar"))], java)
        with zipfile.ZipFile(folder / "wal2lake.jar", "w") as jar:
            jar.writestr(_SERVICE, f"{BASE}\n{CLASS}\n{MASKING}\n")
            for path in sorted(Path(classes).rglob("*.class")):
                jar.write(path, path.relative_to(classes))


def _compile(classes: Path, class_path: Sequence[Path], java: Path) -> None:
    with as_file(files("cdc.stack.artifacts") / "java") as sources:
        command = [str(java), "-cp", os.pathsep.join(map(str, _janino()))]
        command += ["org.codehaus.janino.SimpleCompiler", str(sources / _COMPILE), "Compile"]
        given = [[sources / name for name in _SOURCES], [classes], class_path]
        command += [os.pathsep.join(map(str, paths)) for paths in given]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    if done.returncode or not any(classes.rglob("*.class")):
        raise CdcError(
            ErrorKind.INTERNAL,
            f"{' or '.join(_SOURCES)} does not compile",
            detail=done.stderr.strip()[-300:],
            remedy="report this as a bug, with the version of Java",
        )


def _janino() -> list[Path]:
    """Return Spark's compiler jars, without importing pyspark, which would take a second."""
    spec = find_spec("pyspark")
    places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    names = ("janino-*.jar", "commons-compiler-*.jar")
    return [jar for place in places for name in names for jar in place.glob(f"jars/{name}")]
