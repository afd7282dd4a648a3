"""``python -m bench``, which ``make bench``, ``bench-peers`` and ``bench-memory`` run."""

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from bench.core.reach import Row
from bench.core.room import Benchmark, Room
from bench.core.rows import MEMORY_ROWS, PEER_ROWS, ROWS
from bench.core.sizes import BY_NAME, QUICK
from bench.flame.profile import GRAPHS
from bench.peers.peers import PEERS
from bench.registry import BENCHMARKS
from bench.report.tables import reach_table
from bench.run import Publication, prepare, run
from bench.whole.memory import memory_over

PAGE: Final = Path("docs/benchmarks")
WORK: Final = Path(".wal2lake/bench")
HOUR: Final = 60  # minutes


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
    name, rows, chosen = _asked(only, quick=quick, peers=peers, memory=memory)
    prepare(chosen)
    measured, record = run(chosen, room)
    whole = not only and chosen_sizes.name == "full" and (memory is None or memory >= HOUR)
    folder = out or (PAGE if whole else work / "results" / chosen_sizes.name)
    publication = Publication(
        name=name, rows=rows, folder=folder.resolve(), flames=room.root / GRAPHS
    )
    publication.write(measured, record)
    console.print(reach_table(rows, measured))
    console.print(f"written to {folder}", soft_wrap=True)


def _asked(
    only: str, *, quick: bool, peers: bool, memory: float | None
) -> tuple[str, Sequence[Row], list[Benchmark]]:
    """Return the name of the results, the rows to reach, and the benchmarks to run."""
    if peers:
        return "peers", PEER_ROWS, [PEERS]
    if memory is not None:
        return "memory", MEMORY_ROWS, [memory_over(memory)]
    return "bench", ROWS, selected(only, quick=quick)


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
