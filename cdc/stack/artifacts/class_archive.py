"""Class archives: a Java program maps the classes that an earlier run loaded, and starts faster.

Loading and verifying some ten thousand classes is most of what the start of a Java server costs.
The JVM can write them to a file as it ends, and map that file at the next start (class data
sharing). It checks the file against its own build and the class path, and does without where they
do not fit. The files lie in the cache beside the jars.
"""

import hashlib
import os
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from cdc.stack.artifacts.lock_file import cache_dir
from cdc.stack.artifacts.prerequisites import find_java
from cdc.state import file_lock

MAKING_SECONDS: Final = 20.0
"""How much longer the end of a program may take that writes its archive."""
_AGAIN_SECONDS: Final = 3600.0
"""After so long another run may make an archive whose maker has not ended."""
_UNUSED_SECONDS: Final = 30 * 24 * 3600.0
"""After so long without a run that used it, an archive is removed."""
_SILENT: Final = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""It would name every class that cannot be archived."""


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """Lets one run of a program use the program's archive, or make it."""

    path: Path | None = None  # None for a program that has none
    partial: Path | None = None  # where this run writes it; None where it does not
    claim: "_Claim | None" = None

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the JVM's flags for this run; none where another run is making the archive."""
        if self.partial is not None:
            return (f"-XX:ArchiveClassesAtExit={self.partial}", *_SILENT)
        return (
            (f"-XX:SharedArchiveFile={self.path}", *_SILENT)
            if self.path and self.path.exists()
            else ()
        )

    def settle(self) -> None:
        """Keep what the program has written: it has ended by itself, so the file is whole."""
        if self.path is not None and self.partial is not None:
            with suppress(OSError):  # a later run tries again
                _to_disk(self.partial)
                self.partial.rename(self.path)
                _remove_unused(self.path.parent)
            self._release()

    def give_up(self) -> None:
        """Remove what a program that was killed may have written in part; let others try."""
        if self.path is not None and self.partial is not None:
            self.partial.unlink(missing_ok=True)
            self._release()

    def _release(self) -> None:
        if self.claim is not None:
            self.claim.release()


class _Claim:
    """Locks the making of an archive for one run.

    The lock ends with the process, however that ends.
    """

    def __init__(self, place: Path, handle: int) -> None:
        self._place = place
        self._handle: int | None = handle

    def release(self) -> None:
        """Let others make the archive."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._place.unlink(missing_ok=True)
            os.close(handle)


def existing(program: str, class_path: Iterable[Path]) -> ClassArchive:
    """Return the archive for a run that must not make one, such as a short-lived tool."""
    path = _path(program, class_path)
    _note_use(path)
    return ClassArchive(path)


def archive(program: str, class_path: Iterable[Path]) -> ClassArchive:
    """Return the archive of the program with this class path; this run makes a missing one.

    Only one run at a time does, because that slows it by a third.
    """
    path = _path(program, class_path)
    _note_use(path)
    claim = None if path.exists() else _claimed(path)
    if claim is None:
        return ClassArchive(path)
    for old in path.parent.glob(f"{path.name}.*.partial"):
        old.unlink(missing_ok=True)
    making = ClassArchive(path, path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial"), claim)
    if path.exists():  # since it was looked for
        making.give_up()
        return ClassArchive(path)
    return making


def spark_class_path(jars: Iterable[Path]) -> list[Path]:
    """Return what stands for the class path of a local Spark: pyspark itself, and these jars."""
    found = find_spec("pyspark")
    pyspark = Path(found.origin).parent / "jars" if found and found.origin else Path()
    return [pyspark, *jars]


def _path(program: str, class_path: Iterable[Path]) -> Path:
    java = find_java()
    facts = "\n".join([str(java.path), java.version, *map(str, class_path)])
    digest = hashlib.sha256(facts.encode()).hexdigest()[:12]
    return cache_dir() / "classes" / f"{program}-{digest}.jsa"


def _claimed(path: Path) -> _Claim | None:
    """Claim the making of the archive for this run; None if another run has the claim."""
    place = path.with_suffix(".claim")
    try:
        if _is_older(place, _AGAIN_SECONDS):
            place.unlink(missing_ok=True)
        handle = file_lock.taken(place)
    except OSError:  # the cache cannot be written to
        return None
    if handle is None:
        return None
    os.utime(handle)
    return _Claim(place, handle)


def _note_use(path: Path) -> None:
    with suppress(OSError):  # it is not there, or the cache cannot be written to
        os.utime(path)


def _remove_unused(folder: Path) -> None:
    """Remove the archives of class paths that nobody has any more; a JVM keeps what it mapped."""
    for path in folder.glob("*.jsa"):
        if _is_older(path, _UNUSED_SECONDS):
            path.unlink(missing_ok=True)


def _is_older(path: Path, seconds: float) -> bool:
    try:
        return time.time() - path.stat().st_mtime > seconds
    except FileNotFoundError:
        return False


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
