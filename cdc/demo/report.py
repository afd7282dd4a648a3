"""Prints the results of the demo: figures, and answers to queries on the lake."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from cdc.client.read.sql import query
from cdc.config import Config
from cdc.demo.shop import TABLES
from cdc.demo.stages import Live, Snapshot
from cdc.observe.freshness import percentile

BY_STATUS: Final = (
    "select status, count(*) as orders, sum(total) as total from shop.orders group by 1 order by 1"
)
BESTSELLERS: Final = (
    "select p.name, sum(l.quantity) as sold, sum(l.quantity * l.unit_price) as turnover"
    " from shop.order_lines l join shop.products p on p.product_id = l.product_id"
    " group by 1 order by 2 desc, 1 limit 5"
)

EXAMPLE: Final = """\
open it with any Delta reader, for example from Python:

    from deltalake import DeltaTable, QueryBuilder
    orders = QueryBuilder().register("orders", DeltaTable("LAKE/shop/orders"))
    orders.execute("select * from orders limit 5").read_all()

or:  .venv/bin/wal2lake sql "show tables" --config CONFIG
"""


def lake_rows(config: Config) -> dict[str, int]:
    """Return the number of rows of every table in the lake at the newest cut."""
    text = " union all ".join(
        f"select '{name}' as name, count(*) as found from shop.{name}"  # noqa: S608 - our names
        for name in TABLES
    )
    return {row["name"]: row["found"] for row in query(config, text).rows.to_pylist()}


def print_tables(
    console: Console,
    *,
    snapshot: Snapshot,
    live: Live,
    source: Mapping[str, int],
    lake: Mapping[str, int],
) -> None:
    """Print rows and changes of every table, with a line of sums."""
    table = Table(title="rows and changes", title_justify="left")
    table.add_column("table")
    for name in ("snapshot rows", "changes committed", "rows in the source", "rows in the lake"):
        table.add_column(name, justify="right")
    for name in TABLES:
        counts = (snapshot.rows[name], live.changes[name], source[name], lake[name])
        table.add_row(f"shop.{name}", *(f"{count:,}" for count in counts))
    table.add_section()
    sums = (snapshot.rows, live.changes, source, lake)
    table.add_row("", *(f"{sum(counts.values()):,}" for counts in sums))
    console.print(table)


def print_figures(console: Console, *, snapshot: Snapshot, live: Live, verified: str) -> None:
    """Print the rates, the freshness and the result of ``verify``."""
    p50, p99 = (percentile(sorted(live.freshness), share) for share in (0.5, 0.99))
    lines = {
        "snapshot": f"{snapshot.rate:,.0f} rows/s ({sum(snapshot.rows.values()):,} rows in"
        f" {snapshot.seconds:.1f} s, from the connector's start until readable)",
        "changes": f"{live.rate:,.0f} changes/s ({live.changes.total():,} changes in"
        f" {live.commits:,} transactions, {live.seconds:.1f} s until readable; the"
        " rate of the writers is capped)",
        "freshness": f"p50 {p50:.2f} s, p99 {p99:.2f} s, from a commit until it is readable"
        f" in the lake ({len(live.freshness):,} commits sampled)",
        "verify": verified,
    }
    for name, line in lines.items():
        console.print(f"[bold]{name:10}[/bold] {line}", highlight=False, soft_wrap=True)


def print_farewell(console: Console, config: Config, config_file: Path) -> None:
    """Print where the lake is and how to read it."""
    console.print(f"\n[bold]the lake[/bold]   {config.lake.path}", soft_wrap=True)
    for line in EXAMPLE.splitlines():
        shown = line.replace("LAKE", config.lake.path).replace("CONFIG", str(config_file))
        console.print(shown, soft_wrap=True, highlight=False, markup=False)
