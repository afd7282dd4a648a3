"""Sets of jars that only tests, benchmarks or tools need, each with a lock beside its user."""

import hashlib
import shutil
from pathlib import Path

from cdc.stack.artifacts import ivy
from cdc.stack.artifacts.install import check_digests
from cdc.stack.artifacts.lock_file import Artifact, cache_dir, parse_lock
from cdc.stack.artifacts.prerequisites import find_java


def extra_jars(lock: Path, name: str) -> list[Path]:
    """Return the jars of a set in a lock file; the first call downloads them into the cache.

    Raises UNREACHABLE if they do not arrive, or are not those of the lock.
    """
    artifacts = parse_lock(lock.read_text())[name]
    digest = hashlib.sha256("".join(one.sha256 for one in artifacts).encode()).hexdigest()
    place = cache_dir() / f"extra-{name}-{digest[:12]}"
    if not place.is_dir():
        _install(name, artifacts, place)
    return sorted(place.glob("*.jar"))


def _install(name: str, artifacts: tuple[Artifact, ...], place: Path) -> None:
    downloads = cache_dir() / f"extra-{name}-downloads"
    ivy.download({name: artifacts}, downloads, find_java().path, lambda _: None)
    check_digests(downloads, name, artifacts)
    (downloads / "files" / name).rename(place)
    shutil.rmtree(downloads)
