"""``wal2lake sql`` and ``wal2lake changes`` read the lake, without Spark."""

import datetime as dt
import json
import math
import sys
from decimal import Decimal
from typing import Annotated, Any, Final

import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import cdc
from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.client.read.published import warning
from cdc.client.read.sql import query
from cdc.config import load

SHOWN: Final = 1000
"""How many rows the terminal shows; --json prints all of them."""

QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="One SELECT; tables are named schema.table.")
]
AtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="CUT|LSN|TIME|latest",
        help="Read the tables as of this cut, LSN or time (with a time zone).",
    ),
]


def sql(
    query_text: QueryArgument,
    at: AtOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Print the rows, and on stderr a warning for each table that is flagged at the cut."""
    answer = query(load(config), query_text, at=at)
    for entry in answer.flagged:
        print(f"warning: {warning(entry, answer.cut or 0)}", file=sys.stderr)
    if as_json:
        _print_lines(answer.rows)
    else:
        _print_table(answer.rows)


def changes(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="schema.table")],
    since: Annotated[str, typer.Option("--since", metavar="CUT|LSN|TIME", help="The earlier cut.")],
    at: AtOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Print the rows that only one of the two cuts has: ``removed`` or ``added`` since."""
    rows = cdc.changes(table, since=since, at=at, config=config)
    if as_json:
        _print_lines(rows)
    else:
        _print_table(rows)


def _print_lines(rows: pa.Table) -> None:
    """Print one JSON object per line, so that a large answer can be read as it arrives."""
    for batch in rows.to_batches(max_chunksize=SHOWN):
        for row in batch.to_pylist():
            print(json.dumps({name: plain(value) for name, value in row.items()}))


def _print_table(rows: pa.Table) -> None:
    table = Table(show_edge=False)
    for field in rows.schema:
        numeric = pa.types.is_integer(field.type) or pa.types.is_decimal(field.type)
        table.add_column(Text(field.name), justify="right" if numeric else "left", overflow="fold")
    for row in rows.slice(0, SHOWN).to_pylist():
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    console = Console()
    console.print(table)
    more = rows.num_rows - SHOWN
    note = f"{rows.num_rows} row{'' if rows.num_rows == 1 else 's'}" + (
        f", the first {SHOWN} shown" if more > 0 else ""
    )
    console.print(note, style="dim")


def _cell(value: Any) -> str:  # noqa: ANN401 - any value of a table
    if value is None:
        return ""
    simple = plain(value)
    return simple if isinstance(simple, str) else json.dumps(simple)


def plain(value: Any) -> Any:  # noqa: ANN401 - any value of a table
    """Return the value as JSON can hold it: exact numbers and times as text, bytes as hex."""
    match value:
        case bytes() | Decimal():
            return f"\\x{value.hex()}" if isinstance(value, bytes) else format(value, "f")
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case float():
            return value if math.isfinite(value) else str(value)
        case list():
            return [plain(item) for item in value]
        case dict():
            return {name: plain(item) for name, item in value.items()}
    return value
