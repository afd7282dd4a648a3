"""Builds the jars for a lake in an object store: Hadoop's, and a class of ours for Delta's log."""

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cdc.stack.artifacts import aws_sdk
from cdc.stack.artifacts.compile import build_jar, source_bytes, spark_jars_named

_SOURCE: Final = "OneWriterLogStore.java"
_NEEDED: Final = ("hadoop-client-*.jar", "slf4j-api-*.jar")  # of pyspark's
_SDK: Final = "bundle-"  # how the file of the AWS SDK begins


def digest() -> str:
    """Return a digest of what is made here, so that a change of it makes a new installation."""
    services = " ".join(sorted(aws_sdk.NEEDED))
    return hashlib.sha256(source_bytes(_SOURCE) + services.encode()).hexdigest()


def build(jars: Path, target: Path, *, spark: Sequence[Path], java: Path) -> None:
    """Copy what is needed of the ``jars`` and add ours; ``spark`` are the session's other jars.

    Raises INTERNAL if the class does not compile.
    """
    for jar in sorted(jars.iterdir()):
        copy = aws_sdk.trim if jar.name.startswith(_SDK) else shutil.copy2
        copy(jar, target / jar.name)
    build_jar(
        [_SOURCE],
        target / "wal2lake-log-store.jar",
        class_path=[*spark, *spark_jars_named(*_NEEDED)],
        java=java,
    )
