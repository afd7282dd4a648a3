"""Copies the jars for the images of the stack: ``python -m cdc.stack.artifacts.copy_sets DIR``.

Below DIR there is a folder for each set of the Connect worker, and ``job``, a cache with Spark's
and what it needs for a lake in an object store.
"""

import shutil
import sys
from pathlib import Path

from cdc.stack.artifacts.install import install
from cdc.stack.artifacts.lock_file import CONNECT, CONVERTER, DEBEZIUM, OBJECTS, SPARK, set_dir

WORKER = (CONNECT, DEBEZIUM, CONVERTER)
JOB = (SPARK, OBJECTS)


def main(target: Path) -> None:
    """Install the sets into the cache, and copy them."""
    install([*JOB, *WORKER])
    for name in WORKER:
        shutil.copytree(set_dir(name), target / name)
    for name in JOB:
        shutil.copytree(set_dir(name), target / "job" / set_dir(name).name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
