"""``--dry-run``: what an operation would read, and whether there is time and room for it."""

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdc.cli.status import size
from cdc.client.forecast import DiskRoom, Forecast, SlotRoom

MINUTE = 60
HOUR = 3600


def facts(found: Forecast) -> dict[str, Any]:
    """For JSON: all that is known, with the sums."""
    disks = [{**asdict(disk), "is_enough": disk.is_enough} for disk in found.disks]
    return {**asdict(found), "disks": disks, "rows": found.rows, "bytes": found.bytes}


def show(found: Forecast, console: Console) -> None:
    console.print(_tables(found))
    for line in lines(found):
        console.print(Text(line), soft_wrap=True)


def lines(found: Forecast) -> list[str]:
    """Everything below the table of tables."""
    told = [f"rows where {found.where}"] if found.where else []
    said = "unknown" if found.seconds is None else f"about {span(found.seconds)}"
    told.append(f"time: {said} ({found.basis.removeprefix('unknown: ')})")
    told.append(_slot(found.slot))
    told += [_disk(disk) for disk in found.disks]
    return [*told, "nothing was changed: this was a dry run"]


def span(seconds: float) -> str:
    """``4 s``, ``3 min``, ``2.5 h``."""
    if seconds < MINUTE:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / MINUTE:.0f} min" if seconds < HOUR else f"{seconds / HOUR:.1f} h"


def _tables(found: Forecast) -> Table:
    table = Table(show_edge=False)
    table.add_column("table")
    table.add_column("rows, estimated", justify="right")
    table.add_column("to read", justify="right")
    for each in found.tables:
        table.add_row(Text(each.table), _count(each.rows), _bytes(each.bytes))
    if len(found.tables) > 1:
        table.add_row("all", _count(found.rows), _bytes(found.bytes))
    return table


def _slot(slot: SlotRoom | None) -> str:
    if slot is None:
        return "slot: there is none"
    kept = f"slot {slot.name}: {_bytes(slot.retained_bytes)} of WAL retained"
    if slot.limit_bytes is None:
        return f"{kept}, without a limit (max_slot_wal_keep_size)"
    left = _bytes(slot.safe_bytes)
    return f"{kept}, {left} left of max_slot_wal_keep_size = {size(slot.limit_bytes)}"


def _disk(disk: DiskRoom) -> str:
    said = f"{disk.place}: {size(disk.free_bytes)} free at {disk.path}"
    if disk.needed_bytes:
        said += f", {size(disk.needed_bytes)} needed"
    return said if disk.is_enough else f"{said}: too little"


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _bytes(number: int | None) -> str:
    return "?" if number is None else size(number)
