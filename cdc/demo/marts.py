"""Changes and deletes inputs of the demo's derived tables, and shows how these move.

After each step, Postgres calculates what they have to hold, by queries without any of wal2lake's
forms (the folder ``plain``).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import psycopg
from rich.console import Console
from rich.table import Table

from cdc.client.read.sql import query
from cdc.client.sync import sync
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import LedgerRow
from cdc.state.pipeline import resolve
from cdc.waiting import poll

HERE: Final = Path(__file__).parent
DEFINITIONS: Final = HERE / "derived"
CHANGED: Final = {
    "marts.revenue": "an order raised from 100 to 150, one of 20 deleted",
    "marts.visits": "the page view of 10:20 deleted: the visit splits",
    "marts.fraud": "the middle one of three payments deleted: no pattern any more",
}
"""The derived tables, and what ``changes.sql`` does to their inputs."""
BY_SOURCE: Final = ("marts.revenue", "marts.visits")
"""Those of which Postgres can run the definition itself: it has no ``MATCH_RECOGNIZE``."""


@dataclass(frozen=True, slots=True)
class Mart:
    """Holds the rows of a derived table, each as often as the table has it."""

    columns: Sequence[str]
    rows: Counter[tuple[Any, ...]]


def run_script(config: Config, name: str) -> None:
    """Run a script of this folder in the source, in one transaction."""
    with psycopg.connect(resolve(config).endpoints.source_url) as conn:
        # As bytes: psycopg's types accept a str only if it is a literal, to prevent injection.
        conn.execute((HERE / name).read_bytes())


def read_marts(config: Config) -> dict[str, Mart]:
    """Return the derived tables of the newest cut.

    Raises DIFFERENT if one has other rows than Postgres calculates. Nothing may write meanwhile.
    """
    with psycopg.connect(resolve(config).endpoints.source_url) as conn:
        return {
            name: _equal(name, _lake(config, name, wanted), wanted)
            for name, wanted in _source(conn)
        }


def _source(conn: psycopg.Connection) -> Iterable[tuple[str, Mart]]:
    for name in CHANGED:
        cursor = conn.execute((HERE / "plain" / f"{name}.sql").read_bytes())
        columns = [column.name for column in cursor.description or ()]
        yield name, Mart(columns, Counter(cursor.fetchall()))


def _lake(config: Config, name: str, wanted: Mart) -> Mart:
    text = f"select {', '.join(wanted.columns)} from {name}"  # noqa: S608 - our names
    found = query(config, text).rows.to_pylist()
    return Mart(wanted.columns, Counter(tuple(row.values()) for row in found))


def _equal(name: str, found: Mart, wanted: Mart) -> Mart:
    missing, extra = wanted.rows - found.rows, found.rows - wanted.rows
    if missing or extra:
        raise CdcError(
            ErrorKind.DIFFERENT,
            f"{name} is not what Postgres calculates:"
            f" {missing.total()} rows are missing, {extra.total()} too many",
        )
    return found


def print_moves(console: Console, before: dict[str, Mart], after: dict[str, Mart]) -> None:
    """Print the rows that went and those that came, below what was done to the inputs."""
    for name, what in CHANGED.items():
        console.print(f"\n[bold]{name}[/bold]: {what}", highlight=False)
        console.print(_moved(before[name], after[name]))


def _moved(before: Mart, after: Mart) -> Table:
    table = Table("", *before.columns, box=None)
    for when, rows in (("before", before.rows - after.rows), ("after", after.rows - before.rows)):
        for row in sorted(rows.elements(), key=str):
            table.add_row(when, *map(_shown, row))
        if not rows:
            table.add_row(when, "no row")
    return table


def _shown(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return "" if value is None else str(value)


def await_marts(config: Config, *, timeout: float) -> int:
    """Wait for a cut that has all commits and, at that cut, the derived tables; return its number.

    ``timeout`` is in seconds. Raises what ``sync`` raises, and TIMEOUT.
    """
    pipeline = resolve(config)
    # A sync is content with derived tables that have the commits, but are at a cut just before.
    cut = poll(
        lambda: sync(pipeline, timeout=timeout).cut,
        lambda cut: all(one.at_cut == cut.cut for one in cut.derived),
        every=0.5,
        seconds=timeout,
    )
    if cut is None:
        raise CdcError(ErrorKind.TIMEOUT, f"derived tables still lag after {timeout:.0f} seconds")
    return cut.cut


def lag_line(cuts: Sequence[LedgerRow]) -> str:
    """Return how far the derived tables were behind their inputs in these cuts, and at the last."""
    behind = [max((_behind(row, one, cuts[0]) for one in row.derived), default=0) for row in cuts]
    return (
        f"{behind[-1]} cuts behind their inputs at cut {cuts[-1].cut};"
        f" since the snapshot 0 in {behind.count(0):,} of {len(cuts):,} cuts, at most {max(behind)}"
    )


def _behind(row: LedgerRow, derived: DerivedEntry, first: LedgerRow) -> int:
    """Return by how many cuts; a table that has no rows yet counts from before the first."""
    return row.cut - max(derived.at_cut, first.cut - 1)
