"""``wal2lake verify`` compares every row and value of source and lake at one cut."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.show.wait_line import wait_line
from cdc.client.verify.verdict import TableVerdict
from cdc.client.verify.verify import VerifyReport
from cdc.client.verify.verify import verify as compare_all
from cdc.config import load
from cdc.events.values.lsn import format_lsn
from cdc.state.pipeline import resolve

TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=1,
        help="How long to wait for the job to publish the cut.",
    ),
]


def verify(
    timeout: TimeoutOption = 300,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Compare the captured tables and print the report; exit 1 when any table differs."""
    loaded = load(config)
    with wait_line("verifying") as tell:
        report = compare_all(resolve(loaded), timeout=timeout, tell=tell)
    if as_json:
        print(json.dumps(facts(report), indent=2))
    else:
        show(report, Console())
    if not report.equal:
        raise typer.Exit(1)


def facts(report: VerifyReport) -> dict[str, Any]:
    """Return the report as an object for JSON; of the rows it holds keys, but no other values."""
    return {
        "equal": report.equal,
        "cut": report.cut,
        "lsn": format_lsn(report.lsn),
        "seconds": round(report.seconds, 3),
        "tables": [
            asdict(table) | {"equal": table.equal, "being_read": table.being_read}
            for table in report.tables
        ],
    }


def show(report: VerifyReport, console: Console) -> None:
    """Print a row of counts for each table, the details of what differs, and one closing line."""
    table = Table(show_edge=False)
    for name, side in (
        ("table", "left"),
        ("source rows", "right"),
        ("lake rows", "right"),
        ("missing", "right"),
        ("extra", "right"),
        ("changed", "right"),
        ("", "left"),
    ):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    for verdict in report.tables:
        table.add_row(*_row(verdict))
    console.print(table)
    for verdict in report.tables:
        _explain(verdict, console)
    console.print(_closing_line(report), soft_wrap=True)


def _closing_line(report: VerifyReport) -> str:
    rows = sum(verdict.comparison.source_rows for verdict in report.tables)
    where = f"cut {report.cut}, source at {format_lsn(report.lsn)}"
    left_out = sum(len(verdict.left_out) for verdict in report.tables)
    values = f"every value but {left_out} columns" if left_out else "every value"
    return (
        f"{_outcome(report)}: {len(report.tables)} tables, {rows:,} rows, {values}; {where}; "
        f"{report.seconds:.1f} s"
    )


def _outcome(report: VerifyReport) -> str:
    if report.equal:
        return "[green]equal[/]"
    if all(table.equal or table.being_read for table in report.tables):
        return "[yellow]not all tables can be compared yet[/]"
    return "[red]different[/]"


def _row(verdict: TableVerdict) -> list[str | Text]:
    comparison = verdict.comparison
    numbers = (
        comparison.source_rows,
        comparison.lake_rows,
        comparison.missing,
        comparison.extra,
        comparison.changed,
    )
    return [Text(verdict.table), *(f"{number:,}" for number in numbers), _word(verdict)]


def _word(verdict: TableVerdict) -> Text:
    if verdict.being_read:
        return Text(verdict.state, "yellow")
    return Text("equal", "green") if verdict.equal else Text("different", "red")


def _explain(verdict: TableVerdict, console: Console) -> None:
    """Print what explains the counts: reasons, columns, and the first keys that differ."""
    lines = [f"column {name} is not in the lake" for name in verdict.lacking]
    if verdict.reason:
        lines.append(f"{verdict.state}: {verdict.reason}")
    if verdict.again_at is not None:
        lines.append(
            f"truncated or altered in the meantime, so compared again at cut {verdict.again_at}"
        )
    if verdict.being_read:
        lines.append("its rows are being read; wal2lake sync waits for that, then compare again")
    for difference in () if verdict.being_read else verdict.comparison.keys:
        key = _key(verdict.key, difference.key)
        columns = f": {', '.join(difference.columns)}" if difference.columns else ""
        lines.append(f"{difference.kind} {key}{columns}")
    lines += [f"column {note.column}: {note.reason}" for note in verdict.notes]
    for line in lines:
        console.print(Text(f"  {verdict.table}: {line}", "dim"), soft_wrap=True)


def _key(names: Sequence[str], values: Sequence[str | None]) -> str:
    pairs = zip(names, values, strict=True)
    return ", ".join(f"{name}={'NULL' if value is None else value}" for name, value in pairs)
