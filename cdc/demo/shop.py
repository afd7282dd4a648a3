"""Creates the shop in an empty database and counts what it holds."""

from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

HERE: Final = Path(__file__).parent
ROWS_AT_SCALE_ONE: Final = 200_000  # and some more
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
    """Make the tables and fill them inside the server; rows by table name."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(_script("shop.sql"))
        with conn.transaction():
            conn.execute("select set_config('shop.scale', %s, true)", [str(scale)])
            conn.execute(_script("fill.sql"))
        return count(conn)


def count(conn: psycopg.Connection) -> dict[str, int]:
    """Rows of every table, in one snapshot."""
    query = sql.SQL(" union all ").join(
        sql.SQL("select {}::text, count(*) from {}").format(name, sql.Identifier("shop", name))
        for name in TABLES
    )
    return dict(conn.execute(query).fetchall())


def _script(name: str) -> bytes:
    # Bytes: psycopg takes text from a file only where it cannot be mistaken for a built query.
    return (HERE / name).read_bytes()
