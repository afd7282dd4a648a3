"""``python -m bench``, which ``make bench``, ``bench-peers`` and ``bench-memory`` run."""

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from bench.core.reach import Row
from bench.core.room import Benchmark, Room
from bench.core.rows import MEMORY_ROWS, PEER_ROWS, ROWS
from bench.core.sizes import BY_NAME, QUICK
from bench.derived.rows import DERIVED_ROWS
from bench.flame.profile import GRAPHS
from bench.peers.peers import PEERS
from bench.registry import BENCHMARKS
from bench.report.tables import reach_table
from bench.run import Publication, prepare, run
from bench.whole.memory import memory_over

PAGE: Final = Path("docs/benchmarks")
WORK: Final = Path(".wal2lake/bench")
HOUR: Final = 60  # minutes
SECTIONS: Final = {"bench": ROWS, "derived": DERIVED_ROWS}


def main(
    *,
    quick: Annotated[bool, typer.Option(help="Two minutes instead of thirty.")] = False,
    sizes: Annotated[str, typer.Option(help="full, quick or tiny.")] = "full",
    only: Annotated[str, typer.Option(help="Names of benchmarks, with commas between.")] = "",
    peers: Annotated[bool, typer.Option("--peers", help="Beside Flink CDC and Paimon.")] = False,
    memory: Annotated[
        float | None, typer.Option(help="So many minutes of the job's memory under load.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of keys, values and order.")] = 42,
    out: Annotated[
        Path | None, typer.Option(help="Folder of JSON and plots; docs/benchmarks if all is run.")
    ] = None,
    work: Annotated[Path, typer.Option(help="Emptied first, kept afterwards.")] = WORK,
) -> None:
    """Measure the whole and its parts, and what they are compared with, in one run."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    console = Console(width=None if Console().is_terminal else 160)
    chosen_sizes = QUICK if quick else BY_NAME[sizes]
    room = Room(root=work.resolve(), sizes=chosen_sizes, seed=seed, console=console)
    asked = _asked(only, quick=quick, peers=peers, memory=memory)
    prepare(one for section in asked for one in section.benchmarks)
    room = replace(room, ends=time.monotonic() + chosen_sizes.whole_seconds)
    for section in asked:
        measured, record = run(section.benchmarks, room)
        # A section that was left out altogether stays as it is on the page.
        whole = section.whole and chosen_sizes.name == "full" and bool(measured.figures)
        folder = out or (PAGE if whole else work / "results" / chosen_sizes.name)
        publication = Publication(
            name=section.name,
            rows=section.rows,
            folder=folder.resolve(),
            flames=room.root / GRAPHS,
        )
        publication.write(measured, record)
        console.print(reach_table(section.rows, measured))
        console.print(f"written to {folder}", soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Section:
    """Benchmarks whose results are published together, and the rows that they are to reach.

    It is ``whole`` if a run of full size replaces the section of the page.
    """

    name: str
    rows: Sequence[Row]
    benchmarks: Sequence[Benchmark]
    whole: bool


def _asked(only: str, *, quick: bool, peers: bool, memory: float | None) -> list[Section]:
    if peers:
        return [Section("peers", PEER_ROWS, [PEERS], whole=True)]
    if memory is not None:
        return [Section("memory", MEMORY_ROWS, [memory_over(memory)], whole=memory >= HOUR)]
    return sections(selected(only, quick=quick))


def sections(chosen: Sequence[Benchmark]) -> list[Section]:
    """Return the sections of a run; one is whole if all of its benchmarks are chosen."""
    found = []
    for name, rows in SECTIONS.items():
        inside = [one for one in chosen if one.section == name]
        everything = [one for one in BENCHMARKS if one.section == name]
        if inside:
            found.append(Section(name, rows, inside, whole=inside == everything))
    return found


def selected(only: str, *, quick: bool) -> list[Benchmark]:
    """Return the benchmarks of a run; raises BadParameter for a name that none has."""
    names = [name for name in only.split(",") if name]
    known = {benchmark.name: benchmark for benchmark in BENCHMARKS}
    if unknown := [name for name in names if name not in known]:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(known)}")
    if names:
        return [known[name] for name in names]
    return [one for one in BENCHMARKS if one.in_quick or not quick]


if __name__ == "__main__":
    typer.run(main)
