"""``wal2lake operations`` lists the operations, with the progress and outcome of each."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.show import bar
from cdc.cli.show.follow_operation import NoJobTimeoutOption, follow_operation, results_table
from cdc.cli.sql import plain
from cdc.client.operation_list import all_operations, unfinished_operation
from cdc.config import Config, load
from cdc.lake.records.operations import Row
from cdc.state import operation_files as files
from cdc.state.operation import OperationState, TableResult

IdArgument = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="Show everything about this operation.")
]
FollowOption = Annotated[
    bool,
    typer.Option(
        "--follow", "-f", help="Follow it to its end; without an ID, the only one under way."
    ),
]
UNWELL = frozenset({OperationState.FAILED.value, OperationState.CANCELLED.value})


def operations(
    operation_id: IdArgument = None,
    follow_it: FollowOption = False,
    timeout: NoJobTimeoutOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """List the operations, newest first, or show one; --follow exits with the code of its end."""
    loaded, console = load(config), Console(highlight=False)
    if follow_it:
        operation = unfinished_operation(loaded.state_dir, operation_id)
        follow_operation(
            loaded, operation.id, as_json=as_json, detach=False, timeout=timeout, console=console
        )
    elif operation_id is None:
        _show_all(loaded, console, as_json=as_json)
    else:
        _show_one(loaded, operation_id, console, as_json=as_json)


def _show_all(config: Config, console: Console, *, as_json: bool) -> None:
    rows = all_operations(config)
    if as_json:
        print(json.dumps([facts(config, row) for row in rows], indent=2))
    elif rows:
        console.print(listing(config, rows))
    else:
        console.print("there are no operations yet")


def _show_one(config: Config, operation_id: str, console: Console, *, as_json: bool) -> None:
    row = next((row for row in all_operations(config) if row["id"] == operation_id), None)
    if row is None:
        raise files.unknown_operation(operation_id)
    if as_json:
        print(json.dumps(facts(config, row), indent=2))
        return
    for name, value in details(config, row):
        console.print(Text(f"{name:10} {value}"), soft_wrap=True)
    if row["results"]:
        console.print(results_table(TableResult(**result) for result in row["results"]))


def facts(config: Config, row: Row) -> dict[str, Any]:
    """Return the row as an object for JSON, with the progress of an operation under way."""
    fields: dict[str, Any] = plain(row)
    if not OperationState(row["state"]).ended:
        progress = files.progress(config.state_dir, row["id"])
        fields |= {"progress": bar.live_facts(progress)}
        fields |= {"wish": files.control_request(config.state_dir, row["id"])}
    return fields


def listing(config: Config, rows: list[Row]) -> Table:
    """Return one line for each operation, with its outcome, or its progress so far."""
    table = Table(show_edge=False)
    table.add_column("id", no_wrap=True)
    for name in ("command", "tables", "state"):
        table.add_column(name, overflow="fold")
    table.add_column("seconds", justify="right")
    table.add_column("outcome", overflow="fold")
    for row in rows:
        state = Text(row["state"], "red" if row["state"] in UNWELL else "")
        seconds = "" if row["seconds"] is None else f"{row['seconds']:.1f}"
        tables = Text("\n".join(row["tables"]))
        outcome = Text(row["outcome"] or _so_far(config, row))
        table.add_row(row["id"], row["command"], tables, state, seconds, outcome)
    return table


def _so_far(config: Config, row: Row) -> str:
    """Return the progress of an operation that has not ended."""
    progress = files.progress(config.state_dir, row["id"])
    return ", ".join([bar.place(progress), *bar.counts(progress)])


def details(config: Config, row: Row) -> list[tuple[str, str]]:
    """Return names and values of an operation; empty ones are left out."""
    fields = {
        "id": row["id"],
        "state": row["state"],
        "command": row["command"],
        "line": row["line"],
        "asked by": row["asked_by"],
        "asked at": _moment(row["asked_at"]),
        "tables": ", ".join(row["tables"]),
        "where": row["predicate"] or "",
        "mode": row["mode"] or "",
        "started": _moment(row["started_at"]),
        "ended": _moment(row["ended_at"]),
        "outcome": row["outcome"] or "",
    }
    if not OperationState(row["state"]).ended:
        fields["so far"] = _so_far(config, row)
        fields["requested"] = files.control_request(config.state_dir, row["id"])
    return [(name, value) for name, value in fields.items() if value]


def _moment(value: Any) -> str:  # noqa: ANN401 - a datetime or None
    return f"{value:%Y-%m-%d %H:%M:%S} UTC" if value else ""
