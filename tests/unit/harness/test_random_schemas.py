"""The pure part of ``tests/schemas``, which makes databases from a seed."""

import random
import re
import subprocess
import sys
from collections import Counter

import pytest

from cdc.events.names import column_refusals, table_refusal
from cdc.events.values.pg_types import TYPES
from cdc.tables import TableId
from tests.schemas import names
from tests.schemas.database import SHAPES, TABLES, database
from tests.schemas.kinds import KINDS

SEEDS = range(50)
NOT_INSTALLED = {"geometry", "geography", "vector", "halfvec", "sparsevec"}
MARKS = {
    "unlogged": "CREATE UNLOGGED TABLE",
    "inheritance": r" INHERITS \(",
    "ranges": " PARTITION BY RANGE",
    "lists": " PARTITION BY LIST",
    "hashes": " PARTITION BY HASH",
    "two levels": r"PARTITION OF .* PARTITION BY",
    "deferrable": " DEFERRABLE INITIALLY DEFERRED",
    "composite key": r'PRIMARY KEY \("[^,]+, ',
    "identity index": " REPLICA IDENTITY USING INDEX ",
    "identity full": " REPLICA IDENTITY FULL",
    "identity nothing": " REPLICA IDENTITY NOTHING",
    "identity column": r" GENERATED (ALWAYS|BY DEFAULT) AS IDENTITY",
    "generated column": r" GENERATED ALWAYS AS \(",
    "default": " DEFAULT ",
    "no columns": r"CREATE TABLE \S+ \(\)$",
    "array": r"\[\]",
    "domain": "CREATE DOMAIN ",
    "enum": " AS ENUM ",
    "composite type": r"CREATE TYPE .* AS \(n int",
    "range type": " AS RANGE ",
    "null": r"\(NULL|, NULL",
}


@pytest.fixture(scope="module")
def made() -> dict[int, list[str]]:
    return {seed: database(seed) for seed in SEEDS}


def test_the_same_seed_makes_the_same_in_another_process() -> None:
    code = "from tests.schemas.database import database; print(ascii(database(7)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == ascii(database(7))
    assert database(7) != database(8)


@pytest.mark.parametrize("kind", MARKS)
def test_every_kind_occurs(made: dict[int, list[str]], kind: str) -> None:
    statements = [statement for database in made.values() for statement in database]

    assert any(re.search(MARKS[kind], statement, re.DOTALL) for statement in statements)


def test_every_type_occurs(made: dict[int, list[str]]) -> None:
    created = " ".join(s for found in made.values() for s in found if s.startswith("CREATE TABLE"))

    assert {kind.base for kind in KINDS} | NOT_INSTALLED == {
        name for name in TYPES if not name.startswith("(")
    }
    assert [k.declared for k in KINDS if f'" {k.declared}' not in created] == []


def test_a_database_has_some_thirty_tables_of_which_one_is_wide(
    made: dict[int, list[str]],
) -> None:
    for seed, statements in made.items():
        tables = [s for s in statements if re.match(r"CREATE (UNLOGGED )?TABLE", s)]
        wide = [table for table in tables if table.count(", ") > 90]

        assert TABLES <= len(tables) <= 50, seed
        assert len(wide) == 1, seed
    assert len(SHAPES) == 9


def test_names_are_those_that_postgres_keeps() -> None:
    rng = random.Random(1)
    found = [name for _ in range(500) for name in (names.of_table(rng), names.of_type(rng))]
    found += names.of_columns(rng, 1600)

    assert max(len(name.encode()) for name in found) == 63
    assert all(name and "\0" not in name and name == names.cut(name) for name in found)


def test_most_names_are_kept_and_some_are_refused() -> None:
    rng = random.Random(2)
    tables = Counter(table_refusal(TableId("s", names.of_table(rng))) is None for _ in range(500))
    columns = Counter(
        not list(column_refusals(TableId("s", "t"), names.of_columns(rng, 8))) for _ in range(500)
    )

    assert min(tables.values()) > 50
    assert tables[True] > tables[False]
    assert min(columns.values()) > 20
    assert columns[True] > columns[False]
