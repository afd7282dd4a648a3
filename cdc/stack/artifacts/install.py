"""Installs artifact sets into the cache: download, check, unpack, and one rename per set.

``python -m cdc.stack.artifacts`` installs every set of this machine; after that nothing is
downloaded. With names of sets it installs these.
"""

import hashlib
import shutil
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts import converter, ivy, log_store
from cdc.stack.artifacts.lock_file import (
    CONNECT,
    CONVERTER,
    OBJECTS,
    SPARK,
    Artifact,
    cache_dir,
    every_set,
    is_installed,
    jars,
    read_lock,
    set_dir,
)
from cdc.stack.artifacts.prerequisites import check_disk, disk_full_named, find_java
from cdc.state import file_lock

_UNPACKED_FACTOR = 5  # a Postgres archive grows to four times its size


def install(names: Sequence[str]) -> None:
    """Install the sets that are missing, with progress on stderr.

    Raises UNREACHABLE if a download fails or is damaged, DISK_FULL without enough space, and
    PREREQUISITE without a suitable Java.
    """
    if CONVERTER in names:  # a part of it is compiled against the jars of the worker
        names = [CONNECT, *(name for name in names if name != CONNECT)]
    if OBJECTS in names:  # as this one against those of Spark
        names = [SPARK, *(name for name in names if name != SPARK)]
    if all(is_installed(name) for name in names):
        return
    # Two first runs at once: one installs, the other waits and finds it done.
    with file_lock.hold(cache_dir() / "lock"), disk_full_named(cache_dir()):
        missing = {name: read_lock()[name] for name in names if not is_installed(name)}
        total = _size(missing.values())
        check_disk(cache_dir(), total * _UNPACKED_FACTOR)
        if missing:
            _install_missing(missing, total)


def _install_missing(missing: dict[str, tuple[Artifact, ...]], total: int) -> None:
    downloads = cache_dir() / "downloads"
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("downloading", total=total)
        java = find_java().path
        ivy.download(missing, downloads, java, lambda done: progress.update(bar, completed=done))
        progress.update(bar, completed=total, description="checking")
        for name, artifacts in missing.items():
            check_digests(downloads, name, artifacts)
        for name in missing:
            progress.update(bar, description=f"unpacking {name}")
            _place(downloads / "files" / name, name)
        progress.update(bar, description="installed")
    shutil.rmtree(downloads)


def _size(sets: Iterable[Sequence[Artifact]]) -> int:
    return sum(artifact.size for artifacts in sets for artifact in artifacts)


def check_digests(downloads: Path, name: str, artifacts: Sequence[Artifact]) -> None:
    """Raise UNREACHABLE for a file that is not that of the lock.

    Every copy of it is deleted, so that a retry fetches it again.
    """
    for artifact in artifacts:
        path = downloads / "files" / name / artifact.file_name
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        if digest == artifact.sha256:
            continue
        for copy in downloads.rglob(artifact.file_name):
            copy.unlink()
        raise CdcError(
            ErrorKind.UNREACHABLE,
            f"the download of {artifact.file_name} is damaged",
            detail=f"sha256 is {digest}, artifacts.lock has {artifact.sha256}",
            remedy="run the command again; if it fails again, the repository serves another file",
        )


def _place(files: Path, name: str) -> None:
    """Unpack into a folder beside the final one, then rename it: a set is never half there."""
    partial = set_dir(name).with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    if name.startswith("postgres-"):
        _unpack_postgres(files, partial)
    elif name == CONVERTER:
        converter.build_plugin(files, partial, worker=jars(CONNECT), java=find_java().path)
    elif name == OBJECTS:
        log_store.build(files, partial, spark=jars(SPARK), java=find_java().path)
    else:
        _copy_or_unpack(files, partial)
    partial.rename(set_dir(name))


def _copy_or_unpack(files: Path, target: Path) -> None:
    for path in sorted(files.iterdir()):
        if path.name.endswith(".tar.gz"):
            with tarfile.open(path) as archive:
                _extract(archive, target)
        else:
            shutil.copy2(path, target)


def _unpack_postgres(files: Path, target: Path) -> None:
    """Unpack the archive inside the jar, which holds bin, lib and share."""
    (jar,) = files.iterdir()
    with zipfile.ZipFile(jar) as outer:
        (inner,) = (name for name in outer.namelist() if name.endswith(".txz"))
        with outer.open(inner) as stream, tarfile.open(fileobj=stream, mode="r:xz") as archive:
            _extract(archive, target)


def _extract(archive: tarfile.TarFile, target: Path) -> None:
    """Unpack an archive whose checksum was right.

    Python before 3.11.4, as in Debian 12, has no filters; they only guard against foreign archives.
    """
    if hasattr(tarfile, "data_filter"):
        archive.extractall(target, filter="data")
    else:
        archive.extractall(target)  # noqa: S202 - see above


def main(names: Sequence[str] = ()) -> int:
    """Install these sets, or every set of this machine; return the exit code."""
    console = Console(stderr=True)
    try:
        install(names or every_set())
    except CdcError as error:
        console.print(f"error: {error}", markup=False, highlight=False)
        return error.policy.exit_code
    console.print(f"artifacts are in {cache_dir()}", markup=False, highlight=False)
    return 0
