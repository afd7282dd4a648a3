"""Reads the lock of every jar and archive that is run, and finds the installed ones.

``artifacts.lock`` lists ``group:name:version[:classifier][@ext] sha256 bytes`` by set. It contains
all transitive dependencies, because resolving them again gives different answers over time.
"""

import hashlib
import os
import platform
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts import converter, log_store

CACHE_VARIABLE = "WAL2LAKE_CACHE"

SPARK = "spark"
OBJECTS = "objects"
"""What Spark needs for a lake in an object store: 640 MB, so only who has such a lake gets it."""
KAFKA = "kafka"
CONNECT = "connect"
CONVERTER = "converter"
DEBEZIUM = "debezium"
REGISTRY = "registry"

_MACHINES = {
    ("linux", "x86_64"): "linux-amd64",
    ("linux", "aarch64"): "linux-arm64v8",
    ("darwin", "x86_64"): "darwin-amd64",
    ("darwin", "arm64"): "darwin-arm64v8",
}


_MADE = {CONVERTER: converter, OBJECTS: log_store}
"""Sets with a class of ours in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """Describes a file of a Maven repository: its coordinates, its digest and its size in bytes."""

    group: str
    name: str
    version: str
    classifier: str
    extension: str
    sha256: str
    size: int

    @classmethod
    def parse(cls, line: str) -> "Artifact":
        """Parse a line of the lock."""
        coordinates, sha256, size = line.split()
        names, _, extension = coordinates.partition("@")
        group, name, version, *classifier = names.split(":")
        return cls(
            group=group,
            name=name,
            version=version,
            classifier="".join(classifier),
            extension=extension or "jar",
            sha256=sha256,
            size=int(size),
        )

    @property
    def file_name(self) -> str:
        """Return the name of the file in the repository."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{classifier}.{self.extension}"


Lock = dict[str, tuple[Artifact, ...]]


def parse_lock(text: str) -> Lock:
    """Parse the text of a lock: a heading ``[set]``, then a line for each artifact."""
    sets: dict[str, list[Artifact]] = {}
    current: list[Artifact] = []
    for line in text.splitlines():
        if line.startswith("["):
            current = sets.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            current.append(Artifact.parse(line))
    return {name: tuple(artifacts) for name, artifacts in sets.items()}


@cache
def read_lock() -> Lock:
    """Return the lock that this version of wal2lake ships."""
    return parse_lock((files("cdc.stack.artifacts") / "artifacts.lock").read_text())


def postgres_set() -> str:
    """Return the set with Postgres for this machine; raises PREREQUISITE if there is none."""
    machine = (platform.system().lower(), platform.machine())
    if machine not in _MACHINES:
        raise CdcError(
            ErrorKind.PREREQUISITE,
            f"there is no embedded postgres for {'/'.join(machine)}",
            remedy="set source.url to a Postgres of your own",
        )
    return f"postgres-{_MACHINES[machine]}"


def every_set() -> tuple[str, ...]:
    """Return the sets that this machine needs if the configuration replaces no server.

    The lake is on a local disk.
    """
    return (SPARK, KAFKA, CONNECT, CONVERTER, DEBEZIUM, REGISTRY, postgres_set())


def cache_dir() -> Path:
    """Return the directory of the artifacts, which all projects of this user share."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "wal2lake"


def set_dir(name: str) -> Path:
    """Return the directory of a set; its name changes with the lock, so versions never mix."""
    digests = "".join(artifact.sha256 for artifact in read_lock()[name])
    if name in _MADE:
        digests += _MADE[name].digest()
    return cache_dir() / f"{name}-{hashlib.sha256(digests.encode()).hexdigest()[:12]}"


def is_installed(name: str) -> bool:
    """Return whether the set is installed: a rename makes it, so its directory is complete."""
    return set_dir(name).is_dir()


def jars(name: str) -> list[Path]:
    """Return the jars of a set; raises PREREQUISITE if it is not installed."""
    if not is_installed(name):
        raise CdcError(
            ErrorKind.PREREQUISITE,
            f"the {name} jars are not installed",
            detail=f"looked in {set_dir(name)}",
            remedy=f"run python -m cdc.stack.artifacts {name}",
        )
    return sorted(set_dir(name).glob("*.jar"))


def spark_jars(*, objects: bool = False) -> list[Path]:
    """Return the jars that the Spark session needs besides those that pyspark brings.

    With ``objects`` it reads and writes a lake in an object store too.
    """
    return jars(SPARK) + (jars(OBJECTS) if objects else [])
