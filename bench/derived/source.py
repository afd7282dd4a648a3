"""Nexmark's tables in Postgres, and their changes there."""

import time
from typing import Final

import psycopg
import pyarrow as pa
from psycopg import sql

from bench.derived.market import Market
from bench.derived.table_rows import Change, TableRows
from bench.whole.load import Mark
from bench.whole.tables import MARKERS_FROM, lsn

SCHEMA: Final = "shop"
TABLES: Final = ("person", "auction", "bid")
MARKS_PER_SECOND: Final = 4
_TYPES: Final = {pa.int64(): "bigint", pa.string(): "text", pa.timestamp("us"): "timestamp"}


def create(url: str, market: Market) -> None:
    """Create the tables, with the rows of the market."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(sql.SQL("create schema {}").format(sql.Identifier(SCHEMA)))
        for name in TABLES:
            rows = market.tables[name].rows
            columns = sql.SQL(", ").join(
                sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(_TYPES[field.type]))
                for field in rows.schema
            )
            statement = sql.SQL("create table {} ({}, primary key (id))")
            conn.execute(statement.format(_named(name), columns))
            _insert(conn, name, rows)
        conn.execute("analyze")


def change(conn: psycopg.Connection, market: Market, rows: int) -> None:
    """Make about so many changes, eight inserts, an update and a delete of ten."""
    for name, one in market.changed(rows).items():
        _change(conn, name, market.tables[name], one)


def _change(conn: psycopg.Connection, name: str, table: TableRows, one: Change) -> None:
    """Execute a change: of a row that goes and comes, its columns are updated."""
    gone = set(table.at(one.gone)["id"].to_pylist())
    keys = one.added["id"].to_pylist()
    updated = one.added.filter(pa.array([key in gone for key in keys]))
    conn.execute(
        sql.SQL("delete from {} where id = any(%s)").format(_named(name)),
        [sorted(gone - set(keys))],
    )
    assigned = sql.SQL(", ").join(
        sql.SQL("{} = %s").format(sql.Identifier(column)) for column in updated.column_names
    )
    with conn.cursor() as cursor:
        cursor.executemany(
            sql.SQL("update {} set {} where id = %s").format(_named(name), assigned),
            [[*row.values(), row["id"]] for row in updated.to_pylist()],
        )
    _insert(conn, name, one.added.filter(pa.array([key not in gone for key in keys])))


def _insert(conn: psycopg.Connection, name: str, rows: pa.Table) -> None:
    with (
        conn.cursor() as cursor,
        cursor.copy(sql.SQL("copy {} from stdin").format(_named(name))) as copy,
    ):
        for row in zip(*(rows[column].to_pylist() for column in rows.column_names), strict=True):
            copy.write_row(row)


def _named(table: str) -> sql.Identifier:
    return sql.Identifier(SCHEMA, table)


def load(url: str, market: Market, *, rate: int, seconds: float) -> list[Mark]:
    """Make changes at a rate per second for so long; return the markers that were committed.

    Each transaction inserts one row with the same id into every table, by which a reader knows it.
    What comes late is not made up for: the rate is an upper bound.
    """
    marks: list[Mark] = []
    number = MARKERS_FROM + int(time.time() * 1000)  # higher than those of any load before
    with psycopg.connect(url, autocommit=True) as conn:
        began = due = time.monotonic()
        while due < began + seconds:
            time.sleep(max(0.0, due - time.monotonic()))
            number += 1
            with conn.transaction():
                change(conn, market, rate // MARKS_PER_SECOND)
                for name in TABLES:
                    statement = sql.SQL("insert into {} (id) values (%s)").format(_named(name))
                    conn.execute(statement, [number])
            marks.append(Mark(number, time.time(), lsn(conn)))
            due = max(due + 1 / MARKS_PER_SECOND, time.monotonic())
    return marks
