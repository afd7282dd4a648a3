"""``wal2lake apply-config`` applies a changed configuration while everything keeps running."""

import json
import sys
from collections.abc import Collection
from typing import Annotated

import typer
from rich.console import Console

from cdc.capture.change_captured import unpublish
from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.plan import facts, show
from cdc.cli.show.follow_operation import (
    DetachOption,
    ask_and_follow,
    follow_operation,
    new_operation,
)
from cdc.cli.show.wait_line import wait_line
from cdc.client import config_change
from cdc.client.plan import Plan
from cdc.client.plan_inputs import plan as plan_for
from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind
from cdc.operations import purging
from cdc.state.pipeline import Pipeline, resolve
from cdc.tables import TableId

PurgeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--purge", metavar="TABLE", help="Also delete what lake and topic hold of a removed table."
    ),
]
ConfirmOption = Annotated[
    list[str] | None,
    typer.Option("--confirm", metavar="TABLE", help="Repeat the name to purge without a prompt."),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", min=1, help="How long the job may take to reload."
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
    """Apply what wal2lake plan shows. A second call finishes what was interrupted."""
    loaded = load(config)
    pipeline = resolve(loaded)
    purged = [TableId.parse(name) for name in dict.fromkeys(purge or ())]
    with config_change.only_apply_config(loaded.state_dir):
        purging.refuse_captured(loaded, purged)
        purging.refuse_unknown(loaded, purged)
        _confirm(list(map(str, purged)), confirm or ())
        plan = plan_for(pipeline)
        config_change.refuse_impossible(loaded, plan, list(map(str, purged)))
        _print(plan, as_json=as_json)
        unread = _take_over(pipeline, plan, timeout)
        _read(loaded, unread, as_json=as_json, detach=detach)
        _purge(pipeline, purged, as_json=as_json, detach=detach)


def _confirm(purged: Collection[str], confirmed: Collection[str]) -> None:
    """Require the name of each table to be purged, typed or given. Raises CONFIG without it."""
    for name in confirmed:
        if name not in purged:
            raise CdcError(
                ErrorKind.CONFIG,
                f"--confirm {name} has no --purge to confirm",
                remedy=f"add --purge {name}, or leave --confirm out",
            )
    for name in purged:
        if name not in confirmed and _typed(name) != name:
            raise CdcError(
                ErrorKind.CONFIG,
                f"purging {name} is not confirmed; nothing was changed",
                remedy=f"type its name when asked, or use --purge {name} --confirm {name}",
            )


def _typed(name: str) -> str:
    if not sys.stdin.isatty():
        return ""
    question = f"This deletes {name} from the lake and empties its topic. Type its name to confirm"
    return str(typer.prompt(question, default="", show_default=False, err=True)).strip()


def _print(plan: Plan, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"plan": facts(plan)}), flush=True)
    else:
        show(plan, Console(highlight=False))


def _take_over(pipeline: Pipeline, plan: Plan, timeout: float) -> list[str]:
    """Reconfigure the connector and the job, and return the tables that the job must then read."""
    with wait_line("reconfiguring the connector and the job"):
        change, reloaded = config_change.take_over(pipeline, timeout)
        if plan.reload and not reloaded:
            config_change.reload_job(pipeline.config, timeout)
    return config_change.tables_to_read(pipeline.config, change)


def _read(config: Config, tables: list[str], *, as_json: bool, detach: bool) -> None:
    """Follow the operations that read some of the tables already, then have the rest read."""
    under_way = config_change.reading_now(config, tables)
    for operation in under_way:
        follow_operation(config, operation.id, as_json=as_json, detach=detach)
    being_read = {name for operation in under_way for name in operation.tables}
    rest = [name for name in tables if name not in being_read]
    if rest:
        operation = new_operation(config_change.READ, rest, config_change.READ_OPTIONS)
        ask_and_follow(config, operation, as_json=as_json, detach=detach)


def _purge(pipeline: Pipeline, purged: list[TableId], *, as_json: bool, detach: bool) -> None:
    if purged:
        unpublish(pipeline, purged)
        operation = new_operation(purging.COMMAND, map(str, purged))
        ask_and_follow(pipeline.config, operation, as_json=as_json, detach=detach)
