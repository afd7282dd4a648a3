"""``wal2lake resnapshot``: read tables again from the source, while all others go on."""

import json
from typing import Annotated

import typer
from rich.console import Console

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.show.follow import DetachOption, NoJobTimeoutOption, ask_and_follow, new_operation
from cdc.cli.show.forecast import facts, show
from cdc.cli.show.waiting import waiting
from cdc.client.forecast import Forecast
from cdc.client.resnapshot import refuse_now, wanted
from cdc.client.selection import Asked
from cdc.config import load
from cdc.state.endpoints import resolve
from cdc.state.operation import IN_PLACE, SHADOW

TablesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TABLE]...", help="schema.table, or a pattern with * and ?."),
]
WhereOption = Annotated[
    str | None,
    typer.Option("--where", metavar="SQL", help="Only the rows inside this predicate."),
]
ShadowOption = Annotated[
    bool,
    typer.Option(
        "--shadow/--in-place",
        help="Beside the table, which goes on until it is replaced in one step; or in the table, "
        "which waits while it is read.",
    ),
]


AllOption = Annotated[bool, typer.Option("--all", help="Every captured table.")]
StoppedOption = Annotated[bool, typer.Option("--stopped", help="Every table that is stopped.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Only say what would be read, and whether there is room.")
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
    loaded = load(config)
    endpoints = resolve(loaded)
    asked = Asked(names=tuple(tables or ()), every=every, stopped=stopped)
    with waiting("looking at the tables"):
        found = wanted(loaded, endpoints, asked, where=where, shadow=shadow)
    if found.selection.nothing:
        print(
            json.dumps({"nothing": found.selection.nothing}) if as_json else found.selection.nothing
        )
        return
    if dry_run:
        _print(found.forecast, as_json=as_json)
        return
    refuse_now(loaded, endpoints, found.forecast)
    options = {"mode": SHADOW if shadow else IN_PLACE} | ({"where": where} if where else {})
    operation = new_operation("resnapshot", map(str, found.selection.tables), options)
    ask_and_follow(loaded, operation, as_json=as_json, detach=detach, timeout=timeout)


def _print(ahead: Forecast, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts(ahead), indent=2))
    else:
        show(ahead, Console())
