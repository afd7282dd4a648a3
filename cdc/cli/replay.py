"""``wal2lake replay``: a table made anew of the log or of Kafka, in its place or beside it."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.show.follow import DetachOption, NoJobTimeoutOption, ask_and_follow, new_operation
from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind
from cdc.observe import logs
from cdc.operations.replay.to_path import Outcome, ReplayOptions, replay_into
from cdc.tables import TableId


class Marker(Enum):
    """Where the events are taken from."""

    LOG = "log"
    KAFKA = "kafka"


TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help="schema.table")]
FromOption = Annotated[
    Marker, typer.Option("--from", help="The lake's log, or the topics alone where that is lost.")
]
ToOption = Annotated[
    str | None,
    typer.Option("--to", metavar="CUT|LSN", help="As of this cut; with --into only."),
]
IntoOption = Annotated[
    str | None,
    typer.Option("--into", metavar="PATH", help="Make it there, and leave the lake's as it is."),
]


def replay(
    table: TableArgument,
    *,
    whence: FromOption = Marker.LOG,
    to: ToOption = None,
    into: IntoOption = None,
    detach: DetachOption = False,
    timeout: NoJobTimeoutOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Without --into the job rebuilds the table and replaces it in one commit."""
    loaded, name = load(config), TableId.parse(table)
    if into is not None:
        _into(loaded, name, into, whence.value, to, as_json=as_json)
        return
    if to is not None:
        raise CdcError(
            ErrorKind.CONFIG,
            "--to is given without --into: the lake's table cannot stand at an older cut",
            remedy="name a path with --into",
        )
    operation = new_operation("replay", [str(name)], {"from": whence.value})
    ask_and_follow(loaded, operation, as_json=as_json, detach=detach, timeout=timeout)


def _into(
    config: Config, table: TableId, path: str, marker: str, to: str | None, *, as_json: bool
) -> None:
    _quiet()
    place = path if "://" in path else str(Path(path).resolve())
    with _lines() as say:
        options = ReplayOptions(table=table, path=place, events_from=marker, at=to)
        outcome = replay_into(config, options, say=say)
    if as_json:
        print(json.dumps(facts(outcome)))
    else:
        print("\n".join(sentences(outcome)))
    if outcome.likeness is not None and not outcome.likeness.equal:
        raise typer.Exit(1)


def _quiet() -> None:
    """Only warnings, on stderr: stdout is the command's own."""
    os.environ.setdefault(logs.LEVEL_VARIABLE, "WARNING")
    logs.configure()


@contextmanager
def _lines() -> Iterator[Callable[[str], None]]:
    """One line that changes on a terminal, lines elsewhere; on stderr."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda text: console.print(text, markup=False, soft_wrap=True)
        return
    with console.status("starting") as line:
        yield line.update


def facts(outcome: Outcome) -> dict[str, Any]:
    """All that is known, in terms of JSON."""
    found = asdict(outcome) | {"rows_per_second": round(outcome.rate, 1)}
    found["from"] = found.pop("events_from")
    found["seconds"] = round(outcome.seconds, 3)
    alike = found.pop("likeness")
    equal = outcome.likeness.equal if outcome.likeness else None
    return found | {"equal": equal, "differences": alike}


def sentences(outcome: Outcome) -> list[str]:
    """What was made, and how it compares."""
    where = "the end of the topics" if outcome.cut is None else f"cut {outcome.cut}"
    refused = f", {outcome.refused:,} refused" if outcome.refused else ""
    made = (
        f"{outcome.table} as of {where}: {outcome.rows:,} rows of {outcome.events:,} events"
        f"{refused}, {outcome.seconds:.1f} s, {outcome.rate:,.0f} rows/s; at {outcome.path}"
    )
    if outcome.likeness is None:
        return [made, f"not compared: {outcome.not_compared}"]
    if outcome.likeness.equal:
        return [made, f"equal to the live table at {where}: {outcome.rows:,} rows"]
    return [made, f"different from the live table at {where}: {outcome.likeness.words}"]
