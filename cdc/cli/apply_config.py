"""``wal2lake apply-config``: take a changed configuration over while all else goes on."""

import json
import sys
from collections.abc import Collection
from typing import Annotated

import typer
from rich.console import Console

from cdc.capture.recapture import unpublish
from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.plan import facts, show
from cdc.cli.show.follow import DetachOption, ask_and_follow, follow, new_operation
from cdc.cli.show.waiting import waiting
from cdc.client import config_change
from cdc.client.plan import Plan
from cdc.client.plan_inputs import plan as look
from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind
from cdc.operations import purging
from cdc.state.endpoints import Endpoints, resolve
from cdc.tables import TableId

PurgeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--purge", metavar="TABLE", help="Delete the lake's table of one that is taken out."
    ),
]
ConfirmOption = Annotated[
    list[str] | None,
    typer.Option("--confirm", metavar="TABLE", help="Its name again, where nobody can type it."),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", min=1, help="How long the job may take to take it over."
    ),
]


def apply_config(
    *,
    purge: PurgeOption = None,
    confirm: ConfirmOption = None,
    detach: DetachOption = False,
    timeout: TimeoutOption = 300,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """See first with wal2lake plan. Called again, it finishes what was interrupted."""
    loaded = load(config)
    endpoints = resolve(loaded)
    purged = [TableId.parse(name) for name in dict.fromkeys(purge or ())]
    with config_change.alone(loaded.state_dir):
        purging.refuse_captured(loaded, purged)
        purging.refuse_unknown(loaded, purged)
        _confirm(list(map(str, purged)), confirm or ())
        found = look(loaded, endpoints)
        config_change.refuse(loaded, found, list(map(str, purged)))
        _tell(found, as_json=as_json)
        read = _take_over(loaded, endpoints, found, timeout)
        _read(loaded, read, as_json=as_json, detach=detach)
        _purge(loaded, endpoints, purged, as_json=as_json, detach=detach)


def _confirm(purged: Collection[str], confirmed: Collection[str]) -> None:
    """Each table that is deleted by its typed name. Raises CONFIG."""
    for name in confirmed:
        if name not in purged:
            raise CdcError(
                ErrorKind.CONFIG,
                f"--confirm {name} confirms nothing",
                remedy=f"with --purge {name}",
            )
    for name in purged:
        if name not in confirmed and _typed(name) != name:
            raise CdcError(
                ErrorKind.CONFIG,
                f"purging {name} is not confirmed; nothing was changed",
                remedy=f"type its name when asked, or --purge {name} --confirm {name}",
            )


def _typed(name: str) -> str:
    if not sys.stdin.isatty():
        return ""
    question = f"{name} is deleted from the lake, with its topic. Its name, to confirm"
    return str(typer.prompt(question, default="", show_default=False, err=True)).strip()


def _tell(found: Plan, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"plan": facts(found)}), flush=True)
    else:
        show(found, Console(highlight=False))


def _take_over(config: Config, endpoints: Endpoints, found: Plan, timeout: float) -> list[str]:
    """The tables that the job has to read then."""
    with waiting("the connector and the job take the configuration over"):
        done, told = config_change.take_over(config, endpoints, timeout)
        if found.reload and not told:
            config_change.reload_job(config, timeout)
    return config_change.to_read(config, done)


def _read(config: Config, tables: list[str], *, as_json: bool, detach: bool) -> None:
    """Have the tables read, or follow who reads them already, until they follow the source."""
    under_way = config_change.reading_now(config, tables)
    for operation in under_way:
        follow(config, operation.id, as_json=as_json, detach=detach)
    asked = {name for operation in under_way for name in operation.tables}
    rest = [name for name in tables if name not in asked]
    if rest:
        operation = new_operation(config_change.READ, rest, config_change.READ_OPTIONS)
        ask_and_follow(config, operation, as_json=as_json, detach=detach)


def _purge(
    config: Config, endpoints: Endpoints, purged: list[TableId], *, as_json: bool, detach: bool
) -> None:
    if purged:
        unpublish(config, endpoints, purged)
        operation = new_operation(purging.COMMAND, map(str, purged))
        ask_and_follow(config, operation, as_json=as_json, detach=detach)
