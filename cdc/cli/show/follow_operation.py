"""Ask the job for an operation and follow it to its end; shared by the commands."""

import json
import shlex
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdc.cli.show import bar
from cdc.client.status import components
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.state import operation_files as files
from cdc.state.operation import Operation, OperationState, Progress, TableResult
from cdc.state.submission import asked_now
from cdc.waiting import poll

LOOK_SECONDS: Final = 0.25
INTERRUPTED: Final = 130
"""The exit code of a command that was ended by Ctrl-C."""

DetachOption = Annotated[
    bool,
    typer.Option("--detach", "-d", help="Return once the job has the request; do not follow it."),
]
"""Use as ``detach: DetachOption = False``."""

NoJobTimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0,
        help="Give up with exit code 11 when the job has not run for this long; default: never.",
    ),
]
"""Use as ``timeout: NoJobTimeoutOption = None``."""


def new_operation(
    command: str,
    tables: Iterable[str],
    options: Mapping[str, str] | None = None,
    line: str | None = None,
) -> Operation:
    """Return an operation requested now; ``line`` is by default this process's command line."""
    if line is None:
        line = shlex.join(["wal2lake", *sys.argv[1:]])
    return asked_now(command, tables, options or {}, line=line)


def ask_and_follow(
    config: Config,
    operation: Operation,
    *,
    as_json: bool,
    detach: bool,
    timeout: float | None = None,
) -> None:
    """Ask the job for the operation and follow it to its end.

    Raises UNREACHABLE when the job is not running, CONFLICT when another operation has one of the
    tables, and whatever ``follow_operation`` raises.
    """
    if not components.job(config.state_dir).alive:
        raise CdcError(
            ErrorKind.UNREACHABLE,
            f"the job is not running, and {operation.command} needs it",
            remedy="wal2lake up",
        )
    files.ask(config.state_dir, operation)
    follow_operation(config, operation.id, as_json=as_json, detach=detach, timeout=timeout)


def follow_operation(
    config: Config,
    operation_id: str,
    *,
    as_json: bool,
    detach: bool,
    timeout: float | None = None,
    console: Console | None = None,
) -> None:
    """Show the progress of the operation until it has ended, then its outcome.

    Raises the error that it ended with, with its kind; SERVER_FAILED when the job has not run for
    ``timeout`` seconds (None: wait for ever). Ctrl-C leaves the operation running.
    """
    operation = files.operation(config.state_dir, operation_id)
    shown = console or Console(highlight=False)
    if detach:
        _print_asked(operation, shown, as_json=as_json)
        return
    try:
        ended = _until_ended(config, operation, shown, as_json=as_json, timeout=timeout)
    except KeyboardInterrupt:
        print(_how_to_follow(operation_id), file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    tell_outcome(operation, ended, shown, as_json=as_json)
    raise_end(ended)


def _print_asked(operation: Operation, console: Console, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"id": operation.id, "state": OperationState.WAITING.value}))
    else:
        console.print(Text(f"requested: {_how_to_follow(operation.id)}"), soft_wrap=True)


def _how_to_follow(operation_id: str) -> str:
    return (
        f"operation {operation_id} runs in the job;"
        f" to see it: wal2lake operations {operation_id};"
        f" to end it: wal2lake cancel {operation_id}"
    )


def _until_ended(
    config: Config, operation: Operation, console: Console, *, as_json: bool, timeout: float | None
) -> Progress:
    last_alive = time.monotonic()
    with bar.display(operation, console, as_json=as_json) as display:

        def look() -> Progress:
            nonlocal last_alive
            # Checked before the progress is read: a job may end the operation and then die.
            alive = components.job(config.state_dir).alive
            progress = files.progress(config.state_dir, operation.id)
            if progress.state.ended:
                return progress
            display.show(progress, job_alive=alive)
            last_alive = time.monotonic() if alive else last_alive
            if timeout is not None and time.monotonic() - last_alive >= timeout and not alive:
                raise _no_job(operation, timeout)
            return progress

        return poll(look, lambda progress: progress.state.ended, every=LOOK_SECONDS)


def _no_job(operation: Operation, timeout: float) -> CdcError:
    return CdcError(
        ErrorKind.SERVER_FAILED,
        f"the job has not run for {timeout:g} s, and operation {operation.id} has not ended",
        remedy="run wal2lake up: the job then starts the operation again; wal2lake status shows "
        "what else is down",
    )


def tell_outcome(operation: Operation, ended: Progress, console: Console, *, as_json: bool) -> None:
    """Print the outcome on stdout; that of a failure only as JSON, otherwise its error tells it."""
    if as_json:
        print(json.dumps(outcome_facts(operation, ended)), flush=True)
        return
    if ended.state is not OperationState.DONE:
        return
    if len(ended.results) > 1:
        console.print(results_table(ended.results))
    took = "" if ended.seconds is None else f", {bar.duration(ended.seconds)}"
    console.print(Text(f"{operation.command} is done: {ended.outcome}{took}"), soft_wrap=True)


def outcome_facts(operation: Operation, ended: Progress) -> dict[str, Any]:
    """Return everything known about an operation that has ended, as an object for JSON."""
    return {
        "id": operation.id,
        "command": operation.command,
        "tables": list(operation.tables),
        "options": dict(operation.options),
        "state": ended.state.value,
        "started_at": ended.started_at,
        "ended_at": ended.ended_at,
        "seconds": None if ended.seconds is None else round(ended.seconds, 3),
        "outcome": ended.outcome,
        "error_kind": ended.error_kind,
        "reason": ended.reason,
        "remedy": ended.remedy,
        "results": [asdict(result) for result in ended.results],
    }


def results_table(results: Iterable[TableResult]) -> Table:
    """Return the counts of each table of an operation, one row per table."""
    table = Table(show_edge=False)
    table.add_column("table")
    for name in ("rows read", "added", "changed", "swept", "refused", "cut", "seconds"):
        table.add_column(name, justify="right")
    for result in results:
        numbers = (result.rows_read, result.added, result.changed, result.swept, result.refused)
        cut = "" if result.cut_after is None else str(result.cut_after)
        cells = [f"{number:,}" for number in numbers]
        table.add_row(Text(result.table), *cells, cut, f"{result.seconds:.1f}")
    return table


def raise_end(ended: Progress) -> None:
    """Raise the error that the operation ended with; do nothing when it is done."""
    if ended.state is OperationState.DONE:
        return
    kinds = {kind.value: kind for kind in ErrorKind}
    kind = kinds.get(ended.error_kind, ErrorKind.INTERNAL)
    raise CdcError(kind, ended.reason or f"operation {ended.id} failed", remedy=ended.remedy)
