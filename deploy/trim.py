"""Removes what an image does not need: ``trim.py LIST FOLDER``."""

import shutil
import sys
import zipfile
from fnmatch import fnmatchcase
from pathlib import Path


def main(listed: Path, folder: Path) -> int:
    """Remove what the patterns of the list match; name those that match nothing."""
    lines = (line.strip() for line in listed.read_text().splitlines())
    patterns = [line for line in lines if line and not line.startswith("#")]
    idle = [pattern for pattern in patterns if not _removed(folder, pattern)]
    for pattern in idle:
        sys.stderr.write(f"{listed}: {pattern} matches nothing in {folder}\n")
    return 1 if idle else 0


def _removed(folder: Path, pattern: str) -> int:
    """Remove what a pattern matches, and return how much that is."""
    paths, _, entries = pattern.partition("!") if ".jar!" in pattern else (pattern, "", "")
    found = list(folder.glob(paths))
    if entries:
        return sum(_removed_from(jar, entries) for jar in found)
    for path in found:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return len(found)


def _removed_from(jar: Path, pattern: str) -> int:
    """Write a jar anew without what a pattern matches in it; * matches / too."""
    partial, count = jar.with_suffix(".partial"), 0
    with zipfile.ZipFile(jar) as whole, zipfile.ZipFile(partial, "w") as kept:
        for entry in whole.infolist():
            if fnmatchcase(entry.filename, pattern):
                count += not entry.is_dir()
            else:
                kept.writestr(entry, whole.read(entry))
    partial.rename(jar)
    return count


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
