"""Tables whose log is as if it had been written long ago."""

import os
import time
from pathlib import Path


def age(path: str, *, days: int) -> None:
    """Delta, in every implementation, goes by the times of the files of the log."""
    then = time.time() - days * 24 * 3600
    for file in (Path(path) / "_delta_log").iterdir():
        os.utime(file, (then, then))
