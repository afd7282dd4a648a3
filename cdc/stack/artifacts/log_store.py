"""Builds the jars for a lake in an object store: Hadoop's, and a class of ours for Delta's log."""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cdc.stack.artifacts.compile import build_jar, source_bytes, spark_jars_named

_SOURCE: Final = "OneWriterLogStore.java"
_NEEDED: Final = ("hadoop-client-*.jar", "slf4j-api-*.jar")  # of pyspark's


def digest() -> str:
    """Return a digest of the Java sources, so that a change of them makes a new installation."""
    return hashlib.sha256(source_bytes(_SOURCE)).hexdigest()


def build(jars: Path, target: Path, *, spark: Sequence[Path], java: Path) -> None:
    """Copy the ``jars`` and add ours; ``spark`` are the session's other jars, with Delta's.

    Raises INTERNAL if the class does not compile.
    """
    for jar in sorted(jars.iterdir()):
        shutil.copy2(jar, target)
    build_jar(
        [_SOURCE],
        target / "wal2lake-log-store.jar",
        class_path=[*spark, *spark_jars_named(*_NEEDED)],
        java=java,
    )
