"""Creates the shop in an empty database and counts its rows."""

from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

HERE: Final = Path(__file__).parent
ROWS_AT_SCALE_ONE: Final = 200_000  # at least
TABLES: Final = (
    "customers",
    "products",
    "product_descriptions",
    "orders",
    "order_lines",
    "payments",
    "page_views",
)


def create(url: str, scale: float) -> dict[str, int]:
    """Create the tables, fill them inside the server, and return the rows by table name.

    At ``scale`` 1 there are at least ``ROWS_AT_SCALE_ONE`` rows.
    """
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(_script("shop.sql"))
        with conn.transaction():
            conn.execute("select set_config('shop.scale', %s, true)", [str(scale)])
            conn.execute(_script("fill.sql"))
        return count(conn)


def count(conn: psycopg.Connection) -> dict[str, int]:
    """Return the rows of every table, counted in one snapshot."""
    query = sql.SQL(" union all ").join(
        sql.SQL("select {}::text, count(*) from {}").format(name, sql.Identifier("shop", name))
        for name in TABLES
    )
    return dict(conn.execute(query).fetchall())


def _script(name: str) -> bytes:
    # As bytes: psycopg's types accept a str only if it is a literal, to prevent injection.
    return (HERE / name).read_bytes()
