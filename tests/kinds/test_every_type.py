"""Values of every type, by snapshot and by stream, in the lake as Postgres itself writes them."""

from typing import Any

import pytest

from cdc.client.verify.verify import Report, verify
from cdc.events.values.pg_types import FAMILIES, TYPES, Fidelity, kept
from cdc.source.catalog.catalog import inspect
from cdc.source.server.connection import connect
from tests.kinds import odd, special
from tests.kinds.columns import SCHEMA, TABLES
from tests.kinds.pipeline import Pipeline, Row, made

pytestmark = pytest.mark.integration

Differences = dict[str, dict[int, tuple[Row | None, Row | None]]]
BAD_IN_SNAPSHOT = range(1, 1 + len(special.limit_values()))
FIRST_STREAMED = 1000


@pytest.fixture(scope="module")
def after_snapshot(pipeline: Pipeline) -> Differences:
    pipeline.synced()
    return pipeline.compared()


@pytest.fixture(scope="module")
def states(pipeline: Pipeline, number: int, after_snapshot: Differences) -> dict[str, str]:
    """Of the tables, after as many rows more, and changes and deletes of the first ones."""
    assert after_snapshot
    for table, kinds in TABLES.items():
        pipeline.insert(table, made(kinds, number - number // 2))
        listed = ", ".join(f'"{name}"' for name in kinds)
        pipeline.execute(f"""
            UPDATE {SCHEMA}.{table} t SET (n, {listed}) = (SELECT 1, {listed}
              FROM {SCHEMA}.{table} o WHERE o.id = t.id + 1) WHERE id % 5 = 0;
            UPDATE {SCHEMA}.{table} SET n = 2 WHERE id % 5 = 1;
            DELETE FROM {SCHEMA}.{table} WHERE id % 5 = 2;
        """)
    _change_special(pipeline)
    return pipeline.synced()


def _change_special(pipeline: Pipeline) -> None:
    special.insert_limits(pipeline, FIRST_STREAMED)
    special.insert_nulls(pipeline, FIRST_STREAMED)
    special.insert_refused(pipeline, FIRST_STREAMED)
    special.insert_altered(pipeline, FIRST_STREAMED)
    special.insert_large(pipeline, FIRST_STREAMED)
    pipeline.execute(f"""
        INSERT INTO {SCHEMA}.defaults VALUES ({FIRST_STREAMED}, 0), ({FIRST_STREAMED + 1}, 0);
        DELETE FROM {SCHEMA}.defaults WHERE id = {FIRST_STREAMED + 1};
        UPDATE {SCHEMA}.limits SET n = 1, v_date = 'infinity' WHERE id = 0;
        UPDATE {SCHEMA}.refused SET n = 1;
        INSERT INTO {SCHEMA}.nulls (id) VALUES ({FIRST_STREAMED + 1});
        UPDATE {SCHEMA}.nulls SET n = 1;
        UPDATE {SCHEMA}.large SET n = 1;
        UPDATE {SCHEMA}.keyed SET n = 1 WHERE id % 3 = 0;
        DELETE FROM {SCHEMA}.keyed WHERE id % 3 = 1;
        UPDATE {SCHEMA}.keyed SET i = (-id, 'y'), h = 'é', b = '1/0' WHERE id % 3 = 2;
    """)


@pytest.fixture(scope="module")
def after_stream(pipeline: Pipeline, states: dict[str, str]) -> Differences:
    assert states
    return pipeline.compared()


@pytest.fixture(scope="module")
def report(pipeline: Pipeline, states: dict[str, str]) -> Report:
    assert states
    return verify(pipeline.given, timeout=120)


@pytest.mark.parametrize("table", TABLES)
def test_after_the_snapshot_every_value_is_that_of_postgres(
    after_snapshot: Differences, table: str
) -> None:
    assert after_snapshot[table] == {}


@pytest.mark.parametrize("table", TABLES)
def test_after_the_stream_every_value_is_that_of_postgres(
    after_stream: Differences, table: str
) -> None:
    assert after_stream[table] == {}


SPECIAL = {
    "large": special.LARGE,
    "keyed": special.KEYS,
    "defaults": special.DEFAULTS,
    "nulls": special.DEFAULTS,  # NULL, where there is a default
}


@pytest.mark.parametrize("table", SPECIAL)
def test_large_values_that_did_not_change_keys_of_many_types_and_defaults(
    pipeline: Pipeline, states: dict[str, str], table: str
) -> None:
    kinds = special.kinds(SPECIAL[table])
    there = pipeline.source(table, kinds)

    assert states[table] == "streaming"
    assert len(there) > 1
    assert pipeline.lake(table, kinds) == there


def test_a_value_beyond_a_limit_is_put_aside_and_its_row_stays_as_it_was(
    pipeline: Pipeline, states: dict[str, str]
) -> None:
    values = special.limit_values()
    refused = [row for row in pipeline.quarantine() if row["table"] == f"{SCHEMA}.limits"]
    by_column = sorted(row["reason"].split()[1] for row in refused)

    assert states["limits"] == "degraded"
    assert {row["id"]: row["n"] for row in pipeline.lake_rows("limits")} == {
        0: 0,  # its update was refused
        FIRST_STREAMED: 0,
    }
    assert by_column == sorted([*(f"v_{name}" for name, _ in values * 2), "v_date"])
    assert all(" holds a value that " in row["reason"] for row in refused)
    assert all(row["topic"].endswith(f".{SCHEMA}.limits") and row["key"] for row in refused)
    assert len({row["offset"] for row in refused}) == len(refused)


def test_the_other_tables_go_on(states: dict[str, str]) -> None:
    others = {state for table, state in states.items() if table != "limits"}

    assert others == {"streaming"}


def test_refused_columns_are_named_and_left_out(pipeline: Pipeline, states: dict[str, str]) -> None:
    with connect(pipeline.given.endpoints.source_url) as connection:
        findings = inspect(connection, pipeline.config).findings
    said = {f.subject: f.message for f in findings if f.subject.startswith(f"{SCHEMA}.refused.")}

    assert states["refused"] == "streaming"
    for number, declared in enumerate(special.REFUSED):
        assert said[f"{SCHEMA}.refused.c{number}"].startswith("will not arrive: "), declared
    assert pipeline.lake_rows("refused")[0].keys() == {"id", "n", "_cdc_offset"}
    assert {(row["id"], row["n"]) for row in pipeline.lake_rows("refused")} == {
        (1, 1),
        (FIRST_STREAMED, 1),
    }


def test_verify_says_what_the_random_comparison_says(report: Report) -> None:
    equal = {table.table.partition(".")[2] for table in report.tables if table.equal}

    assert equal == {*TABLES, *SPECIAL, "refused", *odd.TABLES, odd.WIDE}


def test_verify_names_each_value_that_arrived_as_another(report: Report) -> None:
    """No event tells them, so that nothing else can."""
    [found] = [table for table in report.tables if table.table == f"{SCHEMA}.altered"]
    names = list(special.ALTERED)

    assert found.comparison.changed == 2 * len(names)
    assert {(key.key, key.columns) for key in found.comparison.keys} == {
        ((str(first + number),), (name,))
        for first in (1, FIRST_STREAMED)
        for number, name in enumerate(names)
    }


def test_every_type_that_this_postgres_has_is_in_the_table(pipeline: Pipeline) -> None:
    """And none that it has not, but for those of extensions."""
    with pipeline.connect() as connection:
        rows = connection.execute("""
            SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace
               AND typtype IN ('b', 'r', 'm') AND typname !~ '^_'
        """).fetchall()
    others = {*FAMILIES["Types of extensions"], *FAMILIES["User-defined types"]}

    assert {name for (name,) in rows} == TYPES.keys() - others


def test_every_type_that_is_kept_is_tested_here(pipeline: Pipeline) -> None:
    with pipeline.connect() as connection:
        rows: list[tuple[Any, ...]] = connection.execute(
            """
            SELECT t.typname, t.typtype, e.typname
              FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
              JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type e ON e.oid = t.typelem
                   AND t.typcategory = 'A'
             WHERE c.relnamespace = %s::regnamespace AND c.relname = ANY(%s) AND a.attnum > 0
            """,
            (SCHEMA, list(TABLES)),
        ).fetchall()
    scalars = {name for name, _, element in rows if element is None}
    arrays = {element for _, _, element in rows if element is not None}

    expected = {name for name, found in TYPES.items() if found.fidelity is not Fidelity.REFUSED}
    assert {name for name in expected if not name.startswith("(")} <= scalars
    assert {kind for _, kind, _ in rows} >= {"b", "c", "d", "e", "m", "r"}
    assert arrays == {name for name in TYPES if kept(name).arrays}
