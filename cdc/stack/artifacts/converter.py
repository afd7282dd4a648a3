"""Builds the Avro converter's plugin folder: Apicurio's jars, and classes of ours that extend it.

They are compiled during installation by the Java compiler that Spark brings, so a JRE suffices.
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
MASKING: Final = "wal2lake.MaskingAvroConverter"
"""Used where ``source.columns`` names columns."""
_SOURCES: Final = ("NullKeepingAvroConverter.java", "MaskingAvroConverter.java")
_SERVICE: Final = "META-INF/services/org.apache.kafka.connect.storage.Converter"


def digest() -> str:
    """Return a digest of the Java sources, so that a change of them makes a new installation."""
    return hashlib.sha256(source_bytes(*_SOURCES) + BASE.encode()).hexdigest()


def build_plugin(jars: Path, target: Path, *, worker: Sequence[Path], java: Path) -> None:
    """Build the plugin folder below ``target`` from Apicurio's ``jars``.

    ``worker`` are the jars of Kafka Connect, ``java`` the program that compiles. The service file
    spares the worker a scan of all class files, which takes ten seconds of every start. Raises
    INTERNAL if the classes do not compile.
    """
    folder = target / FOLDER
    shutil.copytree(jars, folder)
    build_jar(
        _SOURCES,
        folder / "wal2lake.jar",
        class_path=[*worker, *sorted(folder.glob("*.jar"))],
        java=java,
        entries={_SERVICE: f"{BASE}\n{CLASS}\n{MASKING}\n"},
    )
