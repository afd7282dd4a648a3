"""``wal2lake plan`` prints what ``apply-config`` would do, as text or as JSON."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.status import size
from cdc.client.plan import AddedTable, Plan, RemovedTable
from cdc.client.plan_inputs import plan as plan_for
from cdc.config import load
from cdc.errors import POLICY, ErrorKind
from cdc.state.pipeline import resolve

Line = tuple[str, str]
"""A text and its style."""


def plan(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Print the plan without changing anything; exit 5 when a wanted table cannot be followed."""
    loaded = load(config)
    planned = plan_for(resolve(loaded))
    if as_json:
        print(json.dumps(facts(planned), indent=2))
    else:
        show(planned, Console(highlight=False))
    if not planned.fit:
        raise typer.Exit(POLICY[ErrorKind.SOURCE_NOT_READY].exit_code)


def facts(planned: Plan) -> dict[str, Any]:
    """Return the plan as an object for JSON; each added table is one flat object."""
    added = [{**asdict(each.table), "replaces": each.replaces} for each in planned.added]
    return {**asdict(planned), "added": added, "empty": planned.empty, "fit": planned.fit}


def show(planned: Plan, console: Console) -> None:
    """Print the plan's lines in their colours."""
    for text, style in lines(planned):
        console.print(Text(text, style), soft_wrap=True)


def lines(planned: Plan) -> Iterator[Line]:
    """Yield what changes, then warnings and refusals, then what to do next."""
    for added in planned.added:
        yield from _added(added)
    for removed in planned.removed:
        yield _removed(removed), "yellow"
    for name in planned.unread:
        yield f"~ {name}: will be read; it is captured, but its rows are not in the lake", "green"
    yield from _beside(planned)
    marked = [(warning, "yellow") for warning in planned.warned]
    marked += [(refusal, "red") for refusal in (*planned.refused, *planned.unfit)]
    for refusal, colour in marked:
        yield f"! {refusal.subject}: {refusal.message}", colour
        if refusal.remedy:
            yield f"    remedy: {refusal.remedy}", "dim"
    yield from _closing(planned)


def _added(added: AddedTable) -> Iterator[Line]:
    table = added.table
    rows = "rows not counted yet" if table.rows is None else f"about {table.rows:,} rows"
    key = f"key {', '.join(table.key)}" if table.key else table.mode
    yield f"+ {table.table}: {key}; {rows}, {size(table.bytes)} to read", "green"
    if added.replaces:
        yield "    replaces a Delta table that is in the lake already", "dim"
    for column in table.left_out:
        yield f"    column {column.column} will not arrive: {column.reason}", "dim"


def _removed(removed: RemovedTable) -> str:
    if removed.bytes is None:
        return f"- {removed.table}: will no longer be followed; the lake has no table of it"
    kept = size(removed.bytes)
    return f"- {removed.table}: will no longer be followed; its Delta table ({kept}) stays"


def _beside(planned: Plan) -> Iterator[Line]:
    """Yield the changes to publication, topics, connector and job."""
    publication = "creates the publication with" if planned.makes_publication else "publishes"
    for what, names in (
        (publication, planned.publish),
        ("creates topics", planned.topics),
        ("changes connector settings", planned.settings),
        ("the job reloads", planned.reload),
    ):
        if names:
            yield f"  {what}: {', '.join(names)}", ""


def _closing(planned: Plan) -> Iterator[Line]:
    if planned.restart:
        names = ", ".join(planned.restart)
        yield f"takes effect only after wal2lake down and wal2lake up: {names}", "yellow"
    if not planned.begun:
        yield "nothing is captured yet: wal2lake up begins with all of these tables", ""
    elif planned.refused:
        yield "wal2lake apply-config would refuse this", "red"
    elif planned.empty:
        yield "no changes", ""
    else:
        yield f"changes for wal2lake apply-config: {summary(planned)}", ""


def summary(planned: Plan) -> str:
    """Return the counts of tables, as ``2 tables to add, 1 table to remove``."""
    counts = (
        (len(planned.added), "add"),
        (len(planned.removed), "remove"),
        (len(planned.unread), "read"),
    )
    words = [f"{_tables(count)} to {verb}" for count, verb in counts if count]
    return ", ".join(words) or "no table is added or removed"


def _tables(count: int) -> str:
    return f"{count} table{'' if count == 1 else 's'}"
