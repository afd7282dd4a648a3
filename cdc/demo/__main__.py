"""Run the demo: ``make demo`` calls this as ``python -m cdc.demo``."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cdc.demo.demo import Demo, Options
from cdc.demo.demo_directory import DemoDirectory
from cdc.errors import POLICY, CdcError, ErrorKind

INTERRUPTED = 130
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(
    *,
    seconds: Annotated[float, typer.Option(min=1, help="Seconds of live changes.")] = 60,
    rate: Annotated[float, typer.Option(min=1, help="Transactions per second.")] = 150,
    rows: Annotated[int, typer.Option(min=2000, help="Rows to snapshot, at least.")] = 200_000,
    seed: Annotated[int, typer.Option(help="Seed of the random workload.")] = 42,
    root: Annotated[
        Path, typer.Option("--dir", help="Directory of the demo; emptied first.")
    ] = Path(".wal2lake/demo"),
    clean: Annotated[bool, typer.Option("--clean", help="Only remove an earlier demo.")] = False,
) -> None:
    """Show wal2lake at work: a shop in Postgres, live changes, the lake, and a final check."""
    directory = DemoDirectory(root=root)
    if clean:
        directory.remove()
        return
    # SIGTERM and a closed terminal stop everything, just as Ctrl-C does.
    for number in ENDING:
        signal.signal(number, signal.default_int_handler)
    if not sys.stdout.isatty():
        # A file or pipe has no width; the default of 80 columns would truncate the tables.
        os.environ.setdefault("COLUMNS", "120")
    console = Console()
    options = Options(seconds=seconds, rate=rate, rows=rows, seed=seed)
    demo = Demo(directory=directory, options=options, console=console)
    sys.exit(_run(demo, console))


def _run(demo: Demo, console: Console) -> int:
    try:
        with _stopping(demo.directory, console):
            demo.run()
    except KeyboardInterrupt:
        console.print(f"[yellow]interrupted at step {demo.step}[/yellow]")
        return INTERRUPTED
    except CdcError as error:
        _explain(demo, console, str(error))
        return error.policy.exit_code
    except Exception as error:  # noqa: BLE001 - name the step and the logs for any error
        _explain(demo, console, f"{type(error).__name__}: {error}")
        return POLICY[ErrorKind.INTERNAL].exit_code
    return 0


@contextmanager
def _stopping(directory: DemoDirectory, console: Console) -> Iterator[None]:
    """Stop everything at the end of the block, however it ends."""
    try:
        yield
    finally:
        # A second Ctrl-C must not leave processes running.
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        console.print("stopping everything", style="dim")
        directory.stop()


def _explain(demo: Demo, console: Console, why: str) -> None:
    console.print(f"\n[red]the demo failed at step {demo.step}[/red]: {why}", highlight=False)
    for log in sorted(demo.directory.logs.glob("*.log")):
        console.print(f"  log: {log}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    typer.run(main)
