"""``wal2lake resnapshot`` reads tables from the source again, while all others continue."""

import json
from typing import Annotated

import typer
from rich.console import Console

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.show.follow_operation import (
    DetachOption,
    NoJobTimeoutOption,
    ask_and_follow,
    new_operation,
)
from cdc.cli.show.forecast import facts, show
from cdc.cli.show.wait_line import wait_line
from cdc.client.forecast import Forecast
from cdc.client.resnapshot import prepare, refuse_now
from cdc.client.selection import TableChoice
from cdc.config import load
from cdc.state.operation import IN_PLACE, SHADOW
from cdc.state.pipeline import resolve

TablesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TABLE]...", help="schema.table, or a pattern with * and ?"),
]
WhereOption = Annotated[
    str | None,
    typer.Option("--where", metavar="SQL", help="Read only the rows that satisfy this predicate."),
]
ShadowOption = Annotated[
    bool,
    typer.Option(
        "--shadow/--in-place",
        help="--shadow builds a new table while the live one keeps up, then replaces it in one "
        "commit; --in-place merges into the live table, which waits while it is read.",
    ),
]


AllOption = Annotated[bool, typer.Option("--all", help="Read every captured table.")]
StoppedOption = Annotated[bool, typer.Option("--stopped", help="Read every stopped table.")]
DryRunOption = Annotated[
    bool,
    typer.Option("--dry-run", help="Only show what would be read and whether there is room."),
]


def resnapshot(
    tables: TablesArgument = None,
    *,
    every: AllOption = False,
    stopped: StoppedOption = False,
    where: WhereOption = None,
    shadow: ShadowOption = False,
    dry_run: DryRunOption = False,
    detach: DetachOption = False,
    timeout: NoJobTimeoutOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Ask the job for a resnapshot of the tables and follow it; with --dry-run, only forecast."""
    loaded = load(config)
    pipeline = resolve(loaded)
    choice = TableChoice(names=tuple(tables or ()), every=every, stopped=stopped)
    with wait_line("inspecting the tables"):
        request = prepare(pipeline, choice, where=where, shadow=shadow)
    selection = request.selection
    if selection.nothing:
        print(json.dumps({"nothing": selection.nothing}) if as_json else selection.nothing)
        return
    if dry_run:
        _print(request.forecast, as_json=as_json)
        return
    refuse_now(pipeline, request.forecast)
    options = {"mode": SHADOW if shadow else IN_PLACE} | ({"where": where} if where else {})
    operation = new_operation("resnapshot", map(str, selection.tables), options)
    ask_and_follow(loaded, operation, as_json=as_json, detach=detach, timeout=timeout)


def _print(forecast: Forecast, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts(forecast), indent=2))
    else:
        show(forecast, Console())
