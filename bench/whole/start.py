"""How long ``up`` takes until the job applies, with one table and with many, and before."""

from collections.abc import Iterator
from typing import Final

from bench.core.alternate import alternate
from bench.core.figure import Figure, NotMeasured, Outcome
from bench.core.room import Benchmark, Room
from bench.whole.code import Code, before, ours
from bench.whole.installation import Installation
from cdc.errors import CdcError

WARM_STARTS: Final = 1
Key = tuple[str, int]


def measure(room: Room) -> Iterator[Outcome]:
    """Yield the seconds of warm starts: the installation and all jars were there before."""
    folder, codes = room.fresh("start"), [ours()]
    try:
        codes.append(before())
    except CdcError as error:
        yield NotMeasured(name="start of before", why=str(error))
    places: dict[Key, Installation] = {}
    first: dict[Key, float] = {}
    for code in codes:
        for tables in room.sizes.start_counts:
            one = _installed(room, folder.name, code, tables)
            with one.up() as took:
                first[code.name, tables] = took
            places[code.name, tables] = one
    warm: dict[Key, list[float]] = {key: [] for key in places}
    for _, key in alternate(list(places), WARM_STARTS, room.seed):
        with places[key].up() as took:
            warm[key].append(took)
    for (name, tables), samples in warm.items():
        yield _figure("start", name, tables, samples)
        yield _figure("first start", name, tables, [first[name, tables]])


def _installed(room: Room, folder: str, code: Code, tables: int) -> Installation:
    one = Installation(root=room.root / folder / f"{code.name}-{tables}", code=code)
    one.create(tables=tables, rows=10)
    return one


def _figure(name: str, way: str, tables: int, samples: list[float]) -> Figure:
    return Figure(
        name=name, way=way, unit="s", samples=tuple(samples), parameters={"tables": tables}
    )


START: Final = Benchmark(
    name="start", title="up until the job applies", measure=measure, in_quick=False
)
