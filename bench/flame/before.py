"""Profiles a second of apply by the code of before, in a process of its own.

Run as ``python -m bench.flame.before <table> <rows> <seed> <heap> <output>`` in the tree of before,
so that ``cdc`` is its package. Only that of ``bench`` is imported which needs no newer code.
"""

import json
import sys
from functools import partial
from pathlib import Path

from bench.apply.on_spark import OursOnSpark
from bench.core.spark import session
from bench.flame.applied import profiled
from bench.flame.jvm_stacks import DEEP, of_the_jvm


def main() -> None:
    """Profile the JVM, where the work of Spark is: Python only waits for it."""
    table, rows, seed, heap, output = sys.argv[1:]
    folder = Path(output).parent
    with session(folder / "spark", heap, conf=DEEP) as spark:
        sampling = partial(of_the_jvm, spark._jvm, folder / "before.jfr")  # noqa: SLF001
        profile = profiled(OursOnSpark(spark, Path(table)), int(rows), int(seed), folder, sampling)
    values = {
        "stacks": list(profile.stacks.items()),
        "changes": profile.changes,
        "batches": profile.batches,
        "seconds": profile.seconds,
    }
    Path(output).write_text(json.dumps(values))


if __name__ == "__main__":
    main()
