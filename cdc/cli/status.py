"""``wal2lake status``: how far every table is, and whether every part is well."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.show.bar import duration
from cdc.client.status import findings as unwell
from cdc.client.status.findings import Finding
from cdc.client.status.status import OperationStatus, Status, TableStatus
from cdc.client.status.status import status as ask
from cdc.config import load
from cdc.errors import POLICY
from cdc.events.values.lsn import format_lsn

WELL = frozenset({"streaming", "snapshotting"})
KIB = 1024.0


CheckOption = Annotated[
    bool, typer.Option("--check", help="Only what is not well; exit by the worst of it.")
]
LiveOption = Annotated[
    bool,
    typer.Option("--live", help="As --check, for a health check: no tables, no start, no lag."),
]


def status(
    check: CheckOption = False,
    live: LiveOption = False,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    now = ask(load(config))
    found = unwell.live(unwell.findings(now)) if live else unwell.findings(now)
    checked = check or live
    if as_json:
        print(json.dumps(facts(now, found), indent=2))
    elif checked:
        tell(found)
    else:
        show(now, Console())
        tell(found)
    if checked and (code := unwell.exit_code(found)):
        raise typer.Exit(code)


def tell(found: list[Finding]) -> None:
    """One line for each thing that is not well; one line where all is."""
    for each in found:
        name = each.kind.value.replace("_", " ")
        print(f"{name}: {each.what}; remedy: {each.remedy}")
    if not found:
        print("all is well")


def facts(now: Status, unwell: list[Finding]) -> dict[str, Any]:
    found = asdict(now)
    found["findings"] = [
        {**asdict(each), "kind": each.kind.value, "exit_code": POLICY[each.kind].exit_code}
        for each in unwell
    ]
    found["lsn"] = None if now.lsn is None else format_lsn(now.lsn)
    found["published_at"] = now.published_at and now.published_at.isoformat()
    return found


def show(now: Status, console: Console) -> None:
    if now.tables:
        console.print(_tables(now))
    else:
        console.print("nothing is published yet")
    for table in now.tables:
        if table.reason:
            console.print(Text(f"  {table.table}: {table.reason}", "dim"), soft_wrap=True)
    for operation in now.operations:
        console.print(Text(_operation(operation)), soft_wrap=True)
    for line in _parts(now):
        console.print(Text(line), soft_wrap=True)
    if now.crash:
        console.print(Text(f"last crash of the supervisor: {now.crash}", "dim"), soft_wrap=True)


def _tables(now: Status) -> Table:
    table = Table(show_edge=False)
    table.add_column("table")
    table.add_column("state")
    for name in ("rows applied", "offset", "lag", "bytes", "seconds"):
        table.add_column(name, justify="right")
    for each in now.tables:
        table.add_row(*_row(each))
    return table


def _row(each: TableStatus) -> list[str | Text]:
    return [
        Text(each.table),
        Text(each.state, "" if each.state in WELL else "red"),
        f"{each.rows_applied:,}",
        str(each.offset),
        "?" if each.lag_offsets is None else f"{each.lag_offsets:,}",
        "?" if each.lag_bytes is None else size(each.lag_bytes),
        "?" if each.lag_seconds is None else f"{each.lag_seconds:.1f}",
    ]


def _parts(now: Status) -> list[str]:
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
    lines += [
        f"{server.name}: {_with(server.state, server.reason)}"
        + (f", pid {server.pid}" if server.pid else "")
        + (f", restarted {server.restarts} times" if server.restarts else "")
        for server in now.servers
    ]
    return lines


def _operation(found: OperationStatus) -> str:
    """``operation <id>: resnapshot shop.orders, running: reading, 10 of 90 rows, 4 s left``."""
    tables = ", ".join(found.tables)
    line = f"operation {found.id}: {found.command} {tables}, {found.state}"
    if not found.phase:
        return line
    where = f" {found.table}" if found.table and len(found.tables) > 1 else ""
    of = f" of {found.rows_expected:,}" if found.rows_expected else ""
    rows = f", {found.rows:,}{of} rows" if found.rows or of else ""
    left = "" if found.eta_seconds is None else f", {duration(found.eta_seconds)} left"
    return f"{line}: {found.phase}{where}{rows}{left}"


def _slot(now: Status) -> str:
    found = now.source
    if found is None or found.wal_status is None:
        return "slot: there is none"
    kept = "?" if found.retained_bytes is None else size(found.retained_bytes)
    use = "in use" if found.slot_active else "not in use"
    return f"slot: {use}, {kept} of WAL retained, wal_status {found.wal_status}"


def _with(state: str, reason: str) -> str:
    return f"{state}: {reason}" if reason else state


def size(number: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < KIB:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= KIB
    return f"{number:.1f} TiB"
