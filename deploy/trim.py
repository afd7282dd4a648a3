"""Removes what an image does not need: ``trim.py LIST FOLDER``."""

import shutil
import sys
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
    found = list(folder.glob(pattern))
    for path in found:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return len(found)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
