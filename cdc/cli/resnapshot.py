"""``wal2lake resnapshot``: read tables again from the source, while all others go on."""

from typing import Annotated

import typer

from cdc.cli.following import DetachOption, NoJobTimeoutOption, ask_and_follow, new_operation
from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.config import load

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


def resnapshot(
    tables: TablesArgument = None,
    where: WhereOption = None,
    shadow: ShadowOption = False,
    detach: DetachOption = False,
    timeout: NoJobTimeoutOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    loaded = load(config)
    options = {"mode": "shadow" if shadow else "in-place"} | ({"where": where} if where else {})
    operation = new_operation("resnapshot", tables or [], options)
    ask_and_follow(loaded, operation, as_json=as_json, detach=detach, timeout=timeout)
