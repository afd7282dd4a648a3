"""``wal2lake replay`` and ``rebuild`` build tables anew from the log or from Kafka."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import Enum
from typing import Annotated, Any

import typer
from rich.console import Console

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.show.follow_operation import (
    DetachOption,
    NoJobTimeoutOption,
    ask_and_follow,
    new_operation,
)
from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger
from cdc.observe import logs
from cdc.operations.replay.place import place_for
from cdc.operations.replay.to_path import Outcome, ReplayOptions, replay_into
from cdc.tables import TableId


class EventsFrom(Enum):
    """Says where the events come from, as ``--from`` names it."""

    LOG = "log"
    KAFKA = "kafka"


TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help="schema.table")]
FromOption = Annotated[
    EventsFrom,
    typer.Option("--from", help="The lake's log, or only the topics if the log is lost."),
]
ToOption = Annotated[
    str | None,
    typer.Option("--to", metavar="CUT|LSN", help="Replay up to this cut; only with --into."),
]
IntoOption = Annotated[
    str | None,
    typer.Option(
        "--into", metavar="PATH", help="Write the table there and leave the lake's as it is."
    ),
]

AllOption = Annotated[
    bool,
    typer.Option(
        "--all", help="Rebuild every captured table; for a single table: wal2lake replay."
    ),
]


def replay(
    table: TableArgument,
    *,
    whence: FromOption = EventsFrom.LOG,
    to: ToOption = None,
    into: IntoOption = None,
    detach: DetachOption = False,
    timeout: NoJobTimeoutOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Have the job rebuild the table and replace it in one commit; with --into do it here.

    Raises CONFIG for ``--to`` without ``--into``. Exits with 1 when the table at ``--into``
    differs from the live one at the same cut.
    """
    loaded, name = load(config), TableId.parse(table)
    if into is not None:
        _into(loaded, name, into, whence.value, to, as_json=as_json)
        return
    if to is not None:
        raise CdcError(
            ErrorKind.CONFIG,
            "--to needs --into: the lake's own table cannot go back to an older cut",
            remedy="name another path with --into",
        )
    operation = new_operation("replay", [str(name)], {"from": whence.value})
    ask_and_follow(loaded, operation, as_json=as_json, detach=detach, timeout=timeout)


def rebuild(
    *,
    every: AllOption = False,
    whence: FromOption = EventsFrom.LOG,
    detach: DetachOption = False,
    timeout: NoJobTimeoutOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Replace each table in one commit, so that readers see either the old or the new table.

    Raises CONFIG without ``--all``, and when nothing is published yet.
    """
    loaded = load(config)
    if not every:
        raise CdcError(
            ErrorKind.CONFIG,
            "rebuild replaces every table, so it needs --all",
            remedy="run wal2lake rebuild --all; for one table: wal2lake replay TABLE",
        )
    operation = new_operation("rebuild", _published_tables(loaded), {"from": whence.value})
    ask_and_follow(loaded, operation, as_json=as_json, detach=detach, timeout=timeout)


def _published_tables(config: Config) -> list[str]:
    last = Ledger(ledger_path(config)).last()
    if last is None:
        raise CdcError(
            ErrorKind.CONFIG,
            "nothing is published yet, so nothing can be rebuilt",
            remedy="wait for the first cut; wal2lake status shows the progress",
        )
    return [entry.table for entry in last.tables]


def _into(
    config: Config, table: TableId, path: str, events_from: str, to: str | None, *, as_json: bool
) -> None:
    logs.quiet()
    place = place_for(config, path)
    with _lines() as say:
        options = ReplayOptions(table=table, path=place, events_from=events_from, at=to)
        outcome = replay_into(config, options, say=say)
    if as_json:
        print(json.dumps(facts(outcome)))
    else:
        print("\n".join(sentences(outcome)))
    if outcome.likeness is not None and not outcome.likeness.equal:
        raise typer.Exit(1)


@contextmanager
def _lines() -> Iterator[Callable[[str], None]]:
    """Yield a printer of progress on stderr: one changing line on a terminal, else lines."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda text: console.print(text, markup=False, soft_wrap=True)
        return
    with console.status("starting") as line:
        yield line.update


def facts(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome as an object for JSON; ``equal`` is None when nothing was compared."""
    fields = asdict(outcome) | {"rows_per_second": round(outcome.rate, 1)}
    fields["from"] = fields.pop("events_from")
    fields["seconds"] = round(outcome.seconds, 3)
    differences = fields.pop("likeness")
    equal = outcome.likeness.equal if outcome.likeness else None
    return fields | {"equal": equal, "differences": differences}


def sentences(outcome: Outcome) -> list[str]:
    """Return what was written, and how it compares with the live table, in two lines."""
    where = "the end of the topics" if outcome.cut is None else f"cut {outcome.cut}"
    refused = f", {outcome.refused:,} refused" if outcome.refused else ""
    written = (
        f"{outcome.table} as of {where}: {outcome.rows:,} rows from {outcome.events:,} events"
        f"{refused}, {outcome.seconds:.1f} s, {outcome.rate:,.0f} rows/s; at {outcome.path}"
    )
    if outcome.likeness is None:
        return [written, f"not compared: {outcome.not_compared}"]
    if outcome.likeness.equal:
        return [written, f"equal to the live table at {where}: {outcome.rows:,} rows"]
    return [written, f"different from the live table at {where}: {outcome.likeness.words}"]
