"""The lock of every jar and archive that is run, and where the installed ones lie.

``artifacts.lock`` lists, by set, ``group:name:version[:classifier][@ext] sha256 bytes``. The graphs
are listed whole, because resolving them anew gives other answers on other days.
"""

import hashlib
import os
import platform
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts import converter

CACHE_VARIABLE = "WAL2LAKE_CACHE"

SPARK = "spark"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One file of the repository, by its coordinates, its digest and its size."""

    group: str
    name: str
    version: str
    classifier: str
    extension: str
    sha256: str
    size: int

    @classmethod
    def parse(cls, line: str) -> "Artifact":
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
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{classifier}.{self.extension}"


Lock = dict[str, tuple[Artifact, ...]]


def parse_lock(text: str) -> Lock:
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
    return parse_lock((files("cdc.stack.artifacts") / "artifacts.lock").read_text())


def postgres_set() -> str:
    """The set with the Postgres of this machine; raises PREREQUISITE where there is none."""
    machine = (platform.system().lower(), platform.machine())
    if machine not in _MACHINES:
        raise CdcError(
            ErrorKind.PREREQUISITE,
            f"there is no embedded postgres for {'/'.join(machine)}",
            remedy="name your own in source.url",
        )
    return f"postgres-{_MACHINES[machine]}"


def every_set() -> tuple[str, ...]:
    """All that this machine needs when nothing is replaced by configuration."""
    return (SPARK, KAFKA, CONNECT, CONVERTER, DEBEZIUM, REGISTRY, postgres_set())


def cache_dir() -> Path:
    """Where artifacts are kept, shared by all projects of this user."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen).resolve()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "wal2lake"


def set_dir(name: str) -> Path:
    """The directory of an installed set; its name changes with the lock, so none is ever mixed."""
    digests = "".join(artifact.sha256 for artifact in read_lock()[name])
    if name == CONVERTER:
        digests += converter.digest()
    return cache_dir() / f"{name}-{hashlib.sha256(digests.encode()).hexdigest()[:12]}"


def is_installed(name: str) -> bool:
    """A set appears by one rename, so a directory that is there is whole."""
    return set_dir(name).is_dir()


def jars(name: str) -> list[Path]:
    """The jars of an installed set; raises PREREQUISITE when it is not installed."""
    if not is_installed(name):
        raise CdcError(
            ErrorKind.PREREQUISITE,
            f"the {name} jars are not installed",
            detail=f"looked in {set_dir(name)}",
            remedy="run python -m cdc.stack.artifacts",
        )
    return sorted(set_dir(name).glob("*.jar"))


def spark_jars() -> list[Path]:
    """What the Spark session needs beside the jars that pyspark brings."""
    return jars(SPARK)
