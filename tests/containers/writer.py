"""A writer of small transactions at the source, for as long as something is being broken."""

from itertools import count
from typing import Final

import psycopg

from tests.containers.stack import Stack

TABLES: Final = (
    "CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, mail text)",
    "CREATE TABLE orders (id bigint PRIMARY KEY, customer int, cents bigint)",
    "INSERT INTO customers SELECT i, 'customer ' || i, NULL FROM generate_series(1, 5000) i",
)
"""Makes the tables that are written to."""
_NUMBERS = count(1_000_000)


def fill(rows: int) -> str:
    """Return the statement that inserts so many orders."""
    return f"INSERT INTO orders SELECT i, 1 + i % 5000, i * 7 FROM generate_series(1, {rows}) i"


def write(stack: Stack) -> None:
    """Commit one transaction over two tables, unless Postgres is away."""
    number = next(_NUMBERS)
    try:
        with stack.connect() as connection, connection.transaction():
            connection.execute("INSERT INTO orders VALUES (%s, 1, 5)", [number])
            connection.execute("UPDATE customers SET mail = %s WHERE id = 1", [str(number)])
            connection.execute("DELETE FROM orders WHERE id = %s", [number - 3])
    except psycopg.OperationalError:
        return


def newest_of(stack: Stack) -> int:
    """Return the number of the newest order at the source; the older ones are deleted again."""
    with stack.connect() as connection:
        row = connection.execute("SELECT max(id) FROM orders").fetchone()
    assert row is not None
    return int(row[0])
