"""``wal2lake status`` shows position and lag of each table and the health of each component."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.show.bar import duration
from cdc.client.status import status_findings
from cdc.client.status.status import OperationStatus, Status, TableStatus
from cdc.client.status.status import status as ask
from cdc.client.status.status_facts import facts
from cdc.client.status.status_findings import StatusFinding
from cdc.config import load
from cdc.events.values.lsn import format_lsn
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.state.pace import DRIVER, Pace

WELL = frozenset({"streaming", "snapshotting"})
KIB = 1024.0


CheckOption = Annotated[
    bool, typer.Option("--check", help="Print only problems; exit with the code of the worst.")
]
LiveOption = Annotated[
    bool,
    typer.Option(
        "--live",
        help="Like --check, for a container's health check: ignores table states, a start or "
        "first snapshot in progress, and lag.",
    ),
]


def status(
    check: CheckOption = False,
    live: LiveOption = False,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Print the status and the findings; with --check or --live, exit with the worst one's code."""
    now = ask(load(config))
    problems = (
        status_findings.live(status_findings.findings(now))
        if live
        else status_findings.findings(now)
    )
    checked = check or live
    if as_json:
        print(json.dumps(facts(now, problems), indent=2))
    elif checked:
        tell(problems)
    else:
        show(now, Console())
        tell(problems)
    if checked and (code := status_findings.exit_code(problems)):
        raise typer.Exit(code)


def tell(problems: list[StatusFinding]) -> None:
    """Print one line for each finding, or one line that all is well."""
    for finding in problems:
        name = finding.kind.value.replace("_", " ")
        print(f"{name}: {finding.what}; remedy: {finding.remedy}")
    if not problems:
        print("all is well")


def show(now: Status, console: Console) -> None:
    """Print the table of tables, then a line for each reason, operation and component."""
    if now.tables:
        console.print(_tables(now))
    else:
        console.print("nothing is published yet")
    for table in now.tables:
        if table.reason:
            console.print(Text(f"  {table.table}: {table.reason}", "dim"), soft_wrap=True)
    _show_derived(now, console)
    for operation in now.operations:
        console.print(Text(_operation(operation)), soft_wrap=True)
    for line in _components(now):
        console.print(Text(line), soft_wrap=True)
    if now.crash:
        console.print(Text(f"last crash of the supervisor: {now.crash}", "dim"), soft_wrap=True)


def _tables(now: Status) -> Table:
    table = Table(show_edge=False)
    table.add_column("table")
    table.add_column("state")
    for name in ("rows applied", "offset", "lag", "bytes", "seconds"):
        table.add_column(name, justify="right")
    for row in now.tables:
        table.add_row(*_row(row))
    return table


def _row(table: TableStatus) -> list[str | Text]:
    return [
        Text(table.table),
        Text(table.state, "" if table.state in WELL else "red"),
        f"{table.rows_applied:,}",
        str(table.offset),
        "?" if table.lag_offsets is None else f"{table.lag_offsets:,}",
        "?" if table.lag_bytes is None else size(table.lag_bytes),
        "?" if table.lag_seconds is None else f"{table.lag_seconds:.1f}",
    ]


def _show_derived(now: Status, console: Console) -> None:
    for derived in now.derived:
        console.print(Text(_derived(derived), "" if derived.state in WELL else "red"))
        if derived.table in now.lateness:
            console.print(Text(f"  {now.lateness[derived.table]}", "dim"), soft_wrap=True)


def _derived(entry: DerivedEntry) -> str:
    reason = f": {entry.reason}" if entry.reason else ""
    return (
        f"derived {entry.table}: {entry.state}, {entry.rows:,} rows at cut {entry.at_cut}{reason}"
    )


def _components(now: Status) -> list[str]:
    lines = []
    if now.cut is not None and now.published_at is not None:
        at = "snapshot" if now.lsn is None else format_lsn(now.lsn)
        lines.append(f"cut {now.cut} at {at}, published {now.published_at:%Y-%m-%d %H:%M:%S} UTC")
    if now.source is not None:
        lines.append(_slot(now))
    if now.connector is not None:
        lines.append(f"connector: {_with(now.connector.state, now.connector.reason)}")
    job = now.job
    lines.append(f"job: {f'{job.state}, pid {job.pid}' if job.alive else 'not running'}")
    if now.monitor:
        lines.append(f"monitor: {now.monitor}/metrics")
    if now.pace is not None:
        lines += pace_lines(now.pace)
    lines += [
        f"{server.name}: {_with(server.state, server.reason)}"
        + (f", pid {server.pid}" if server.pid else "")
        + (f", restarted {server.restarts} times" if server.restarts else "")
        for server in now.servers
    ]
    return lines


def pace_lines(pace: Pace) -> list[str]:
    """Return the freshness that was asked for and reached, and the tables that Spark applies."""
    got = "no transaction in the last minute"
    if pace.p50 is not None and pace.p99 is not None:
        got = f"{pace.p50:.1f} s (median) and {pace.p99:.1f} s (99 %) in the last minute"
    lines = [f"freshness: {pace.asked_seconds:g} s asked, {got}"]
    by_driver = sum(way == DRIVER for way in pace.ways.values())
    if by_driver:
        lines.append(f"applied by the driver: {by_driver} of {len(pace.ways)} tables")
    others = {table: way for table, way in sorted(pace.ways.items()) if way not in {DRIVER, ""}}
    return [*lines, *(f"  {table}: by {way}" for table, way in others.items())]


def _operation(operation: OperationStatus) -> str:
    """Return ``operation <id>: resnapshot shop.orders, running: reading, 10 of 90 rows``."""
    tables = ", ".join(operation.tables)
    line = f"operation {operation.id}: {operation.command} {tables}, {operation.state}"
    if not operation.phase:
        return line
    where = f" {operation.table}" if operation.table and len(operation.tables) > 1 else ""
    of = f" of {operation.rows_expected:,}" if operation.rows_expected else ""
    rows = f", {operation.rows:,}{of} rows" if operation.rows or of else ""
    left = "" if operation.eta_seconds is None else f", {duration(operation.eta_seconds)} left"
    return f"{line}: {operation.phase}{where}{rows}{left}"


def _slot(now: Status) -> str:
    source = now.source
    if source is None or source.wal_status is None:
        return "slot: does not exist"
    retained = "?" if source.retained_bytes is None else size(source.retained_bytes)
    use = "in use" if source.slot_active else "not in use"
    return f"slot: {use}, {retained} of WAL retained, wal_status {source.wal_status}"


def _with(state: str, reason: str) -> str:
    return f"{state}: {reason}" if reason else state


def size(number: float) -> str:
    """Return a number of bytes in the unit that fits: ``17 B``, ``2.0 KiB``, up to TiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < KIB:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= KIB
    return f"{number:.1f} TiB"
