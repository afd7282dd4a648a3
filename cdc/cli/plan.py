"""``wal2lake plan``: what ``apply-config`` would do, as text or as JSON."""

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
from cdc.client.plan_inputs import plan as look
from cdc.config import load
from cdc.errors import POLICY, ErrorKind
from cdc.state.endpoints import resolve

Line = tuple[str, str]
"""Text and its style."""


def plan(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Change nothing; exit 5 when a table that is wanted is not fit."""
    loaded = load(config)
    found = look(loaded, resolve(loaded))
    if as_json:
        print(json.dumps(facts(found), indent=2))
    else:
        show(found, Console(highlight=False))
    if not found.fit:
        raise typer.Exit(POLICY[ErrorKind.SOURCE_NOT_READY].exit_code)


def facts(found: Plan) -> dict[str, Any]:
    """The plan in terms of JSON; the tables that are added have all of theirs in one object."""
    added = [{**asdict(each.table), "replaces": each.replaces} for each in found.added]
    return {**asdict(found), "added": added, "empty": found.empty, "fit": found.fit}


def show(found: Plan, console: Console) -> None:
    for text, style in lines(found):
        console.print(Text(text, style), soft_wrap=True)


def lines(found: Plan) -> Iterator[Line]:
    """What changes, what cannot, and what to do next."""
    for added in found.added:
        yield from _added(added)
    for removed in found.removed:
        yield _removed(removed), "yellow"
    for name in found.unread:
        yield f"~ {name}: is captured, and its rows are not in the lake: it is read", "green"
    yield from _beside(found)
    marked = [(warning, "yellow") for warning in found.warned]
    marked += [(refusal, "red") for refusal in (*found.refused, *found.unfit)]
    for refusal, colour in marked:
        yield f"! {refusal.subject}: {refusal.message}", colour
        if refusal.remedy:
            yield f"    remedy: {refusal.remedy}", "dim"
    yield from _ends(found)


def _added(added: AddedTable) -> Iterator[Line]:
    table = added.table
    rows = "rows not counted yet" if table.rows is None else f"about {table.rows:,} rows"
    key = f"key {', '.join(table.key)}" if table.key else table.mode
    yield f"+ {table.table}: {key}; {rows}, {size(table.bytes)} to read", "green"
    if added.replaces:
        yield "    replaces the Delta table of an earlier time", "dim"
    for column in table.left_out:
        yield f"    column {column.column} will not arrive: {column.reason}", "dim"


def _removed(removed: RemovedTable) -> str:
    if removed.bytes is None:
        return f"- {removed.table}: is not followed any more; the lake has no table of it"
    kept = size(removed.bytes)
    return f"- {removed.table}: is not followed any more; its Delta table ({kept}) stays"


def _beside(found: Plan) -> Iterator[Line]:
    publication = "makes the publication with" if found.makes_publication else "publishes"
    for what, names in (
        (publication, found.publish),
        ("makes topics", found.topics),
        ("changes settings of the connector", found.settings),
        ("the job takes over", found.reload),
    ):
        if names:
            yield f"  {what}: {', '.join(names)}", ""


def _ends(found: Plan) -> Iterator[Line]:
    if found.restart:
        names = ", ".join(found.restart)
        yield f"only after wal2lake down and wal2lake up: {names}", "yellow"
    if not found.begun:
        yield "nothing is captured yet: wal2lake up takes it all in", ""
    elif found.refused:
        yield "apply-config would refuse this", "red"
    elif found.empty:
        yield "nothing to do: all of it is captured", ""
    else:
        yield f"wal2lake apply-config does this: {summary(found)}", ""


def summary(found: Plan) -> str:
    """``2 tables in, 1 out``."""
    taken_in, out = len(found.added), len(found.removed)
    counts = [f"{_tables(taken_in)} in"] * bool(taken_in) + [f"{_tables(out)} out"] * bool(out)
    return ", ".join(counts + [f"{_tables(len(found.unread))} read"] * bool(found.unread)) or (
        "no table comes or goes"
    )


def _tables(count: int) -> str:
    return f"{count} table{'' if count == 1 else 's'}"
