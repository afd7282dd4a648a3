"""How long ``up`` takes until the job applies, with one table and with many, and before.

All jars are there, and every installation is new. What the code of before brings of its one table
per second is the first snapshot of before, so that it is started no more often than it must be.
"""

from collections.abc import Iterator
from typing import Final

from bench.core.alternate import alternate
from bench.core.figure import Figure, NotMeasured, Outcome
from bench.core.room import Benchmark, Room
from bench.whole.code import BEFORE_NAME, before, ours
from bench.whole.installation import Installation
from bench.whole.readable import rate_of_snapshot
from bench.whole.snapshot import connected_at, snapshot_figure
from cdc.errors import CdcError

FEW_ROWS: Final = 10  # of each of many tables


def measure(room: Room) -> Iterator[Outcome]:
    """Yield the seconds of a start of each code with each number of tables."""
    folder, codes = room.fresh("start"), [ours()]
    try:
        codes.append(before())
    except CdcError as error:
        yield NotMeasured(name="start of before", why=str(error))
    keys = [(code, tables) for code in codes for tables in room.sizes.start_counts]
    for _, (code, tables) in alternate(keys, 1, room.seed):
        rows = room.sizes.snapshot_rows_before if tables == 1 else FEW_ROWS
        one = Installation(root=folder / f"{code.name}-{tables}", code=code)
        one.create(tables=tables, rows=rows)
        yield from _started(room, one, tables, rows)


def _started(room: Room, one: Installation, tables: int, rows: int) -> Iterator[Outcome]:
    with one.up() as took:
        yield Figure(
            name="start", way=one.code.name, unit="s", samples=(took,),
            parameters={"tables": tables},
        )  # fmt: skip
        if one.code.name == BEFORE_NAME and tables == 1:
            yield _snapshot_of_before(room, one, rows)


def _snapshot_of_before(room: Room, one: Installation, rows: int) -> Outcome:
    patience = room.sizes.snapshot_seconds
    rate, found, seconds = rate_of_snapshot(
        one, tables=1, rows=rows, began=connected_at(one), seconds=patience
    )
    return snapshot_figure(one.code.name, rows, rate, found, seconds)


START: Final = Benchmark(
    name="start",
    title="up until the job applies",
    measure=measure,
    prepare=before,
    in_quick=False,
)
