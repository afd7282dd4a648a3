"""``python -m bench.tutorial``: the whole beside the way of most tutorials."""

import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench.tutorial import figures, ours, theirs
from bench.tutorial.ours import Load
from cdc.demo import shop
from cdc.demo.demo_directory import DemoDirectory
from cdc.demo.source import filled_source
from cdc.errors import CdcError

RESULTS = Path(__file__).parents[1] / "results"


def main(
    *,
    rows: Annotated[int, typer.Option(min=2000, help="Rows to snapshot, at least.")] = 10_000,
    burst: Annotated[int, typer.Option(min=1, help="Transactions of about 550 changes.")] = 8,
    seconds: Annotated[float, typer.Option(min=5, help="Seconds of steady load.")] = 15,
    rate: Annotated[float, typer.Option(min=1, help="Steady transactions per second.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the random workload.")] = 42,
    tutorial: Annotated[bool, typer.Option(help="Measure the tutorial way too.")] = True,
    root: Annotated[Path, typer.Option("--dir", help="Emptied first, kept afterwards.")] = Path(
        ".wal2lake/bench"
    ),
) -> None:
    """Measure wal2lake, then the way of most tutorials, with the same load."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    console, directory = Console(), DemoDirectory(root=root)
    config = directory.create()
    try:
        loaded = filled_source(config, scale=rows / shop.ROWS_AT_SCALE_ONE)
        load = Load(rows=loaded, transactions=burst, seconds=seconds, rate=rate, seed=seed)
        console.print("[bold cyan]wal2lake[/bold cyan]")
        mine = ours.measure(directory, config, load, console)
        directory.stop()
        other = None
        if tutorial:
            console.print("[bold cyan]tutorial[/bold cyan]")
            other = theirs.measure(root.resolve(), config, load, console)
    except CdcError as error:
        console.print(f"[red]the benchmark failed[/red]: {error}; logs: {directory.logs}")
        sys.exit(error.policy.exit_code)
    finally:
        directory.stop()
    figures.show(console, mine, other)
    path = figures.keep(RESULTS, parameters=asdict(load), ours=mine, theirs=other)
    console.print(f"written to {path}", soft_wrap=True)


if __name__ == "__main__":
    typer.run(main)
