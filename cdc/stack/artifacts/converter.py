"""Builds the Avro converter's plugin folder: Apicurio's jars, and a class of ours that keeps NULL.

The class is compiled during installation by the Java compiler that Spark brings, so a JRE suffices.
"""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cdc.stack.artifacts.compile import build_jar, source_bytes

FOLDER: Final = "apicurio-converter"
CLASS: Final = "wal2lake.NullKeepingAvroConverter"
BASE: Final = "io.apicurio.registry.utils.converter.AvroConverter"
"""Connectors of earlier versions name this class; the worker must know it to answer at all."""
_SOURCE: Final = "NullKeepingAvroConverter.java"
_SERVICE: Final = "META-INF/services/org.apache.kafka.connect.storage.Converter"


def digest() -> str:
    """Return a digest of the Java sources, so that a change of them makes a new installation."""
    return hashlib.sha256(source_bytes(_SOURCE) + BASE.encode()).hexdigest()


def build_plugin(jars: Path, target: Path, *, worker: Sequence[Path], java: Path) -> None:
    """Build the plugin folder below ``target`` from Apicurio's ``jars``.

    ``worker`` are the jars of Kafka Connect, ``java`` the program that compiles. The service file
    spares the worker a scan of all class files, which takes ten seconds of every start. Raises
    INTERNAL if the class does not compile.
    """
    folder = target / FOLDER
    shutil.copytree(jars, folder)
    build_jar(
        _SOURCE,
        folder / "wal2lake.jar",
        class_path=[*worker, *sorted(folder.glob("*.jar"))],
        java=java,
        entries={_SERVICE: f"{BASE}\n{CLASS}\n"},
    )
