"""Checking the files of fifty definitions, in a process of its own each time."""

import subprocess
import sys
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from bench.core.figure import Figure, Outcome, Parameter
from bench.core.room import Room
from bench.derived.names import OURS
from bench.derived.suites import NEXMARK

FILES: Final = 50
_TIMES: Final = 11
_CHECK: Final = """\
import sys, time
from pathlib import Path
from cdc.derive.definition.folder import read_definitions
from cdc.derive.definition.graph import in_order
begun = time.perf_counter()
definitions, problems = read_definitions(Path(sys.argv[1]))
ordered, circles = in_order(definitions)
seconds = time.perf_counter() - begun
assert (len(ordered), problems, circles) == (int(sys.argv[2]), [], []), (problems, circles)
print(seconds)
"""


def measure(room: Room) -> Iterator[Outcome]:
    """Yield the seconds that files take, once Python has loaded what reads them."""
    folder = room.fresh("derived-checked")
    queries = [NEXMARK.queries[name] for name in NEXMARK.definitions]
    for number, query in enumerate(islice(cycle(queries), FILES)):
        (folder / f"marts.t{number}.sql").write_text(query)
    samples = tuple(_seconds(folder) for _ in range(_TIMES))
    where: dict[str, Parameter] = {"files": FILES, "queries": NEXMARK.name}
    yield Figure(name="derived check", way=OURS, unit="s", samples=samples, parameters=where)


def _seconds(folder: Path) -> float:
    command = [sys.executable, "-c", _CHECK, str(folder), str(FILES)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
