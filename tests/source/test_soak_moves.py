"""Test the moves of ``tests/soak``: Postgres accepts each, and each leaves a table of its name."""

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.soak.schema import catalogue
from tests.soak.schema.facts import Column, Table
from tests.soak.schema.moves import MOVES, Move, Rows, created

pytestmark = pytest.mark.integration
_DATABASE = """
DROP SCHEMA IF EXISTS shop CASCADE; CREATE SCHEMA shop;
CREATE TABLE shop.orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "the text" text,
    n numeric(8, 2) DEFAULT 1, twice int GENERATED ALWAYS AS (2) STORED);
INSERT INTO shop.orders ("the text") SELECT 'row ' || i FROM generate_series(1, 20) i;
CREATE TABLE shop.empty (x int)"""


@pytest.fixture(scope="module")
def connection(source_url: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with psycopg.connect(source_url, autocommit=True) as opened:
        opened.execute(_DATABASE.encode())
        yield opened


@pytest.mark.parametrize("move", MOVES, ids=lambda move: move.name)
def test_a_move_writes_rows_and_ends_where_it_began(
    connection: psycopg.Connection[tuple[Any, ...]], move: Move
) -> None:
    connection.execute(b"DROP SCHEMA IF EXISTS moves, moves_elsewhere CASCADE")
    found = {each.name: (table, sql) for each, table, sql in _made(connection)}
    table, _ = found[move.name]
    before = _oid(connection, move)

    for statement in move.statements(Rows(table=table)):
        connection.execute(statement.sql.encode())

    assert before is not None
    assert _oid(connection, move) == before
    (left,) = connection.execute(f"SELECT count(*) FROM {move.quoted}".encode()).fetchone() or ()
    writes = sum(step.count("<write") for step in move.steps)
    assert left == 20 - writes


def _made(connection: psycopg.Connection[tuple[Any, ...]]) -> list[Any]:
    for move in MOVES:
        connection.execute(f"DROP SCHEMA IF EXISTS {move.schema} CASCADE".encode())
    found = list(created(catalogue.read(connection), random.Random(1)))
    for _, _, statement in found:
        connection.execute(statement.sql.encode())
    return found


def _oid(connection: psycopg.Connection[tuple[Any, ...]], move: Move) -> int | None:
    row = connection.execute("SELECT to_regclass(%s)::oid::bigint", (move.quoted,)).fetchone()
    return None if row is None else row[0]


def test_a_database_without_rows_gets_some_that_a_move_can_write(
    connection: psycopg.Connection[tuple[Any, ...]],
) -> None:
    connection.execute(b"DROP SCHEMA IF EXISTS moves, moves_elsewhere CASCADE")
    connection.execute(b"TRUNCATE shop.orders")
    found = _made(connection)
    move, table, _ = found[0]

    for statement in move.statements(Rows(table=table)):
        connection.execute(statement.sql.encode())


def test_a_write_that_finds_no_row_is_an_error(
    connection: psycopg.Connection[tuple[Any, ...]],
) -> None:
    connection.execute(b"CREATE TEMP TABLE bare (x int)")
    table = Table(schema="", name="", columns=(Column(name="x", type="int", base="int4"),))

    with pytest.raises(psycopg.errors.RaiseException, match="no row is written"):
        connection.execute(Rows(table=table).written_to("bare").encode())
