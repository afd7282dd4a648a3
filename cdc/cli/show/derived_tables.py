"""Show derived tables as tables on the terminal, or as JSON."""

import json
from collections.abc import Collection
from dataclasses import asdict
from typing import Any, Final

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdc.client.derived.verify import DerivedReport
from cdc.client.read.published import is_flagged
from cdc.derive.late_rows.lateness import lateness_at
from cdc.lake.records.ledger import LedgerRow

_WITNESSES: Final = {"local": "DuckDB", "spark": "Spark", "source": "the source"}


def listing(row: LedgerRow, timed: Collection[str]) -> Table:
    """Return the state, cut and rows of each derived table of the cut, and what was late.

    ``timed`` are the tables that depend on the time of the cut.
    """
    table, lateness = (
        Table(show_edge=False, caption=f"cut {row.cut}", caption_justify="left"),
        lateness_at(row),
    )
    for name in ("table", "state", "at cut", "version", "rows", ""):
        table.add_column(name, justify="right" if name in {"at cut", "version", "rows"} else "left")
    for entry in row.derived:
        state = Text(entry.state, "red" if is_flagged(entry) else "")
        numbers = str(entry.at_cut), str(entry.version), f"{entry.rows:,}"
        said = entry.reason or str(lateness.get(entry.table, ""))
        by_time = "depends on cut_time()" if entry.table in timed else ""
        said = "; ".join(filter(None, (said, by_time)))
        table.add_row(Text(entry.table), state, *numbers, Text(said))
    return table


def listing_facts(row: LedgerRow, timed: Collection[str]) -> list[dict[str, Any]]:
    """Return what ``listing`` shows as objects for JSON."""
    lateness = {name: asdict(one) for name, one in lateness_at(row).items()}
    return [
        {
            **asdict(one),
            "lateness": lateness.get(one.table),
            "time_dependent": one.table in timed,
        }
        for one in row.derived
    ]


def show_rows(row: LedgerRow, rows: pa.Table, *, as_json: bool) -> None:
    """Print the rows as they are at the cut."""
    if as_json:
        print(json.dumps(preview_facts(row, rows), indent=2))
    else:
        Console(highlight=False).print(preview_table(row, rows))


def preview_table(row: LedgerRow, rows: pa.Table) -> Table:
    """Return the rows as they are at the cut."""
    table = Table(show_edge=False, caption=f"at cut {row.cut}", caption_justify="left")
    for name in rows.column_names:
        table.add_column(Text(name))
    for values in rows.to_pylist():
        table.add_row(*(Text("" if v is None else str(v)) for v in values.values()))
    return table


def preview_facts(row: LedgerRow, rows: pa.Table) -> dict[str, Any]:
    """Return the rows as an object for JSON; what JSON lacks is text."""
    plain = [
        {name: plain_value(value) for name, value in values.items()} for values in rows.to_pylist()
    ]
    return {"cut": row.cut, "rows": plain}


def plain_value(value: object) -> object:
    """Return a value for JSON; what JSON lacks is text."""
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def verdicts(report: DerivedReport) -> Table:
    """Return how each table compares with its query."""
    caption = f"at cut {report.cut}, calculated by {_WITNESSES[report.witness]}"
    table = Table(show_edge=False, caption=caption, caption_justify="left")
    for name in ("table", "rows", "missing", "extra", ""):
        table.add_column(name, justify="right" if name in {"rows", "missing", "extra"} else "left")
    for verdict in report.tables:
        numbers = f"{verdict.rows:,}", f"{verdict.missing:,}", f"{verdict.extra:,}"
        outcome = Text("equal", "green") if verdict.equal else Text("different", "red")
        if verdict.reason:
            outcome = Text(verdict.reason, "red")
        table.add_row(Text(verdict.table), *numbers, outcome)
    return table


def report_facts(report: DerivedReport) -> dict[str, Any]:
    """Return the verdicts as an object for JSON."""
    tables = [asdict(table) | {"equal": table.equal} for table in report.tables]
    return {**asdict(report), "equal": report.equal, "tables": tables}
