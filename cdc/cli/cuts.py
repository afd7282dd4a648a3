"""``wal2lake cuts`` lists the published cuts, or shows every table at one of them."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.client.read.published import cut_at, flagged, is_flagged, warning
from cdc.config import load
from cdc.events.values.lsn import format_lsn
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger, LedgerRow, TableEntry
from cdc.lake.table.merge_plan import BY_OPERATION

AtArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[CUT|LSN|TIME|latest]", help="Show every table at this cut, instead of the list."
    ),
]
LastOption = Annotated[
    int,
    typer.Option("--last", "-n", metavar="N", min=1, help="How many of the newest cuts to list."),
]


def cuts(
    at: AtArgument = None,
    last: LastOption = 20,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """List the cuts, the newest last, each with the tables that differ from the source there."""
    ledger, console = Ledger(ledger_path(load(config))), Console(highlight=False)
    if at is not None:
        _show_one(cut_at(ledger, at), console, as_json=as_json)
        return
    rows = ledger.newest(last + 1)  # one more, because counts are differences to the cut before
    if as_json:
        print(json.dumps([facts(row) for row in rows[-last:]], indent=2))
    elif rows:
        console.print(listing(rows, last))
    else:
        console.print("nothing is published yet")


def _show_one(row: LedgerRow | None, console: Console, *, as_json: bool) -> None:
    if row is None:
        console.print("{}" if as_json else "nothing is published yet")
    elif as_json:
        print(json.dumps(facts(row), indent=2))
    else:
        console.print(_heading(row))
        console.print(_tables(row))
        for entry in flagged(row.entries):
            console.print(Text(warning(entry, row.cut), "yellow"), soft_wrap=True)


def facts(row: LedgerRow) -> dict[str, Any]:
    """Return the row of the ledger as an object for JSON."""
    fields = asdict(row)
    fields["lsn"] = _lsn(row) or None
    for name in ("committed_at", "published_at"):
        fields[name] = fields[name] and fields[name].isoformat()
    return fields


def listing(rows: Sequence[LedgerRow], last: int) -> Table:
    """Return a table of the newest ``last`` rows, each with its changes since the cut before."""
    table = Table(show_edge=False)
    for name in ("cut", "epoch", "lsn"):
        table.add_column(name, justify="right")
    table.add_column("committed")
    for name in ("transactions", *BY_OPERATION):
        table.add_column(name, justify="right")
    table.add_column("not equal")
    predecessors: Sequence[LedgerRow | None] = [None, *rows]
    pairs = list(zip(predecessors, rows, strict=False))
    for previous, row in pairs[-last:]:
        table.add_row(*_line(previous, row))
    return table


def _line(previous: LedgerRow | None, row: LedgerRow) -> list[str | Text]:
    counts = [str(_since(previous, row, name)) for name in BY_OPERATION]
    not_equal = ", ".join(f"{entry.table} {entry.state}" for entry in flagged(row.entries))
    position = [str(row.cut), str(row.epoch), _lsn(row)]
    return [*position, _committed(row), str(row.transactions), *counts, Text(not_equal, "red")]


def _since(previous: LedgerRow | None, row: LedgerRow, name: str) -> int:
    """Return how many events of one operation came between two cuts.

    ``name`` is a counter of the table entries. A table that was replaced counts from 0 again.
    """
    total = 0
    for entry in row.tables:
        old = previous.entry(entry.table) if previous else None
        now, then = getattr(entry, name), getattr(old, name) if old else 0
        total += now - then if now >= then else now
    return total


def _heading(row: LedgerRow) -> str:
    lsn = _lsn(row) or "the first snapshot"
    at = f", committed {_committed(row)}" if row.committed_at else ""
    return f"cut {row.cut} at {lsn}{at}, epoch {row.epoch}, {row.transactions} transactions"


def _tables(row: LedgerRow) -> Table:
    table = Table(show_edge=False)
    table.add_column("table")
    table.add_column("state")
    for name in ("version", "offset", *BY_OPERATION, "refused"):
        table.add_column(name, justify="right")
    for entry in row.tables:
        table.add_row(*_of_table(entry))
    for derived in row.derived:
        state = Text(derived.state, "red" if is_flagged(derived) else "")
        table.add_row(Text(derived.table), state, str(derived.version))
    return table


def _of_table(entry: TableEntry) -> list[str | Text]:
    counts = [f"{getattr(entry, name):,}" for name in BY_OPERATION]
    state = Text(entry.state, "red" if is_flagged(entry) else "")
    position = [str(entry.version), str(entry.offset)]
    return [Text(entry.table), state, *position, *counts, f"{entry.refused:,}"]


def _lsn(row: LedgerRow) -> str:
    return "" if row.lsn is None else format_lsn(row.lsn)


def _committed(row: LedgerRow) -> str:
    at = row.committed_at
    return "" if at is None else at.isoformat(sep=" ", timespec="milliseconds")
