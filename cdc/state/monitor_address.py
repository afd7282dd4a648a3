"""Keeps the address of the job's pages for monitoring, in a file that ``status`` reads."""

import json
import os
from pathlib import Path
from typing import Final

from cdc.state.atomic_file import write_shared

_FILE: Final = "monitor.json"


def write(state_dir: Path, url: str) -> None:
    """Record the URL of this process's pages; the directory may not be there yet."""
    state_dir.mkdir(parents=True, exist_ok=True)
    write_shared(state_dir / _FILE, json.dumps({"pid": os.getpid(), "url": url}))


def read(state_dir: Path, pid: int | None) -> str:
    """Return the URL of the pages of the job with this process id; empty if it has none."""
    try:
        said = json.loads((state_dir / _FILE).read_text())
        return str(said["url"]) if said["pid"] == pid else ""
    except (OSError, ValueError, TypeError, KeyError):
        return ""
