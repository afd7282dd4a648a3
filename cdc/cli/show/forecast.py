"""Show a forecast (``--dry-run``): what an operation would read, how long, and whether it fits."""

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdc.cli.status import size
from cdc.client.forecast import DiskRoom, Forecast, SlotRoom

MINUTE = 60
HOUR = 3600


def facts(forecast: Forecast) -> dict[str, Any]:
    """Return the forecast as an object for JSON, with the sums over all tables."""
    disks = [{**asdict(disk), "is_enough": disk.is_enough} for disk in forecast.disks]
    return {**asdict(forecast), "disks": disks, "rows": forecast.rows, "bytes": forecast.bytes}


def show(forecast: Forecast, console: Console) -> None:
    """Print the tables with their estimates, then the lines about time, slot and disks."""
    console.print(_tables(forecast))
    for line in lines(forecast):
        console.print(Text(line), soft_wrap=True)


def lines(forecast: Forecast) -> list[str]:
    """Return everything below the table of estimates, line by line."""
    texts = [f"rows where {forecast.where}"] if forecast.where else []
    time = "unknown" if forecast.seconds is None else f"about {span(forecast.seconds)}"
    texts.append(f"time: {time} ({forecast.basis.removeprefix('unknown: ')})")
    texts.append(_slot(forecast.slot))
    texts += [_disk(disk) for disk in forecast.disks]
    return [*texts, "nothing was changed: this was a dry run"]


def span(seconds: float) -> str:
    """Return the duration, rounded to one unit: ``4 s``, ``3 min``, ``2.5 h``."""
    if seconds < MINUTE:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / MINUTE:.0f} min" if seconds < HOUR else f"{seconds / HOUR:.1f} h"


def _tables(forecast: Forecast) -> Table:
    table = Table(show_edge=False)
    table.add_column("table")
    table.add_column("rows (estimate)", justify="right")
    table.add_column("to read", justify="right")
    for row in forecast.tables:
        table.add_row(Text(row.table), _count(row.rows), _bytes(row.bytes))
    if len(forecast.tables) > 1:
        table.add_row("all", _count(forecast.rows), _bytes(forecast.bytes))
    return table


def _slot(slot: SlotRoom | None) -> str:
    if slot is None:
        return "slot: does not exist"
    retained = f"slot {slot.name}: {_bytes(slot.retained_bytes)} of WAL retained"
    if slot.limit_bytes is None:
        return f"{retained}, without a limit (max_slot_wal_keep_size)"
    left = _bytes(slot.safe_bytes)
    return f"{retained}, {left} left of max_slot_wal_keep_size = {size(slot.limit_bytes)}"


def _disk(disk: DiskRoom) -> str:
    text = f"{disk.place}: {size(disk.free_bytes)} free at {disk.path}"
    if disk.needed_bytes:
        text += f", {size(disk.needed_bytes)} needed"
    return text if disk.is_enough else f"{text}: not enough"


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _bytes(number: int | None) -> str:
    return "?" if number is None else size(number)
