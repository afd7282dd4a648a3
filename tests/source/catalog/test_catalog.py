"""Test what the catalogue of a real Postgres says of tables and their columns."""

import pytest
from psycopg import sql as sql_module

from cdc.source.catalog.captured import captured_tables
from cdc.source.catalog.catalog import inspect
from cdc.source.server.connection import connect
from cdc.source.setup.prepare import prepare
from cdc.tables import TableMode
from tests.source.conftest import Maker, Sql
from tests.source.findings import errors, warnings

pytestmark = pytest.mark.integration


def test_modes_and_keys(source_url: str, sql: Sql, make_config: Maker) -> None:
    sql("""
        CREATE TABLE composite (a int, b text, c text, PRIMARY KEY (b, a));
        CREATE TABLE bag (x int);  ALTER TABLE bag REPLICA IDENTITY FULL;
        CREATE TABLE readings (at timestamptz);
        CREATE TABLE by_index (a int NOT NULL, b text);
        CREATE UNIQUE INDEX by_index_a ON by_index (a);
        ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_a;
        CREATE TABLE swaps (id int PRIMARY KEY DEFERRABLE);
        ALTER TABLE swaps REPLICA IDENTITY FULL;
        CREATE TABLE covering (id int, note text, PRIMARY KEY (id) INCLUDE (note));
    """)
    config = make_config(append_only=["*.readings"])
    with connect(source_url) as connection:
        tables = captured_tables(connection, config)
    assert {t.table.name: (t.mode, t.key) for t in tables} == {
        "bag": (TableMode.MULTISET, ()),
        "by_index": (TableMode.KEYED, ("a",)),
        "composite": (TableMode.KEYED, ("b", "a")),
        "covering": (TableMode.KEYED, ("id",)),
        "readings": (TableMode.APPEND, ()),
        "swaps": (TableMode.MULTISET, ()),
    }


def test_views_and_partitions(source_url: str, sql: Sql, make_config: Maker) -> None:
    sql("""
        CREATE TABLE t (id int PRIMARY KEY);
        CREATE VIEW v AS SELECT * FROM t;
        CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id);
        CREATE TABLE leaf PARTITION OF root DEFAULT;
    """)
    config = make_config()
    name = config.name
    assert errors(source_url, config) == []
    assert set(warnings(source_url, config)) == {f"{name}.v", f"{name}.root"}
    with connect(source_url) as connection:
        tables = captured_tables(connection, config)
    assert [t.table.name for t in tables] == ["leaf", "t"]
    named = make_config(tables=[f"{name}.v", f"{name}.t"])
    assert [subject for subject, _ in errors(source_url, named)] == [f"{name}.v"]


def test_a_published_table_that_somebody_has_locked_keeps_no_start_waiting(
    source_url: str, sql: Sql, make_config: Maker
) -> None:
    """Whether it is published is asked without a lock on it: a job starts beside a long ALTER."""
    sql("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE other (id int PRIMARY KEY)")
    config = make_config()
    with connect(source_url) as connection, connect(source_url) as holder:
        prepare(connection, config, captured_tables(connection, config))
        holder.execute("BEGIN")
        (schema,) = {table.table.schema for table in captured_tables(connection, config)}
        holder.execute(f'LOCK TABLE "{schema}".t IN ACCESS EXCLUSIVE MODE'.encode())
        connection.execute("SET lock_timeout = '1s'")

        tables = captured_tables(connection, config)

    assert {table.table.name: table.in_publication for table in tables} == {
        "other": True,
        "t": True,
    }


@pytest.mark.parametrize(
    ("publication", "published"),
    [
        ("FOR TABLE {s}.a", {"a": True, "b": False, "leaf": False}),
        ("FOR TABLE {s}.root", {"a": False, "b": False, "leaf": True}),
        ("FOR ALL TABLES", {"a": True, "b": True, "leaf": True}),
        ("FOR TABLES IN SCHEMA {s}", {"a": True, "b": True, "leaf": True}),
    ],
)
def test_what_is_published_is_what_postgres_says(
    source_url: str,
    sql: Sql,
    make_config: Maker,
    publication: str,
    published: dict[str, bool],
) -> None:
    sql("""
        CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY);
        CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id);
        CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (9);
    """)
    config = make_config()
    with connect(source_url) as connection:
        schema = config.source.tables[0].partition(".")[0]
        name = sql_module.Identifier(config.name)
        connection.execute(sql_module.SQL("DROP PUBLICATION IF EXISTS {}").format(name))
        made = f"CREATE PUBLICATION {{}} {publication.format(s=schema)}"
        connection.execute(sql_module.SQL(made).format(name))
        found = {t.table.name: t.in_publication for t in inspect(connection, config).tables}
        view = connection.execute(
            "SELECT tablename FROM pg_publication_tables WHERE pubname = %s AND schemaname = %s",
            (config.name, schema),
        ).fetchall()

    assert found == published
    assert {name for (name,) in view} == {name for name, there in published.items() if there}


def test_a_type_with_a_namesake(source_url: str, sql: Sql, make_config: Maker) -> None:
    """The connector takes one for the other: the schema's dates would be lost silently."""
    sql("""
        DROP SCHEMA IF EXISTS other_types CASCADE; CREATE SCHEMA other_types;
        CREATE TYPE other_types.mood AS ENUM ('sad'); CREATE TYPE other_types.only AS ENUM ('one');
        CREATE TABLE date (id int PRIMARY KEY); CREATE TABLE uuid (id int PRIMARY KEY);
        CREATE TYPE mood AS ENUM ('happy');
        CREATE TABLE t (
            id int PRIMARY KEY, due date, many uuid[], fine text, mine mood,
            theirs other_types.mood, single other_types.only
        )
    """)
    config = make_config()
    sql(f"""
        CREATE TYPE "interval" AS RANGE (subtype = numeric);
        ALTER TABLE t ADD span "{config.name}"."interval"
    """)
    prefix = f"{config.name}.t."
    assert {
        subject.removeprefix(prefix): message for subject, message in errors(source_url, config)
    } == {
        "due": f"the connector takes its type date for {config.name}.date",
        "many": f"the connector takes its type uuid for {config.name}.uuid",
        "theirs": f"the connector takes its type mood for {config.name}.mood",
        "span": "the connector takes its type interval for pg_catalog.interval",
    }


def test_a_domain_is_what_it_is_over_through_other_domains(
    source_url: str, sql: Sql, make_config: Maker
) -> None:
    sql("""
        CREATE TYPE mood AS ENUM ('sad');
        CREATE DOMAIN price AS numeric(8, 2); CREATE DOMAIN sale AS price CHECK (VALUE > 0);
        CREATE DOMAIN day AS date; CREATE DOMAIN holiday AS day; CREATE DOMAIN mind AS mood;
        CREATE DOMAIN flags AS bit(5); CREATE DOMAIN more_flags AS flags;
        CREATE DOMAIN zoned AS timetz; CREATE DOMAIN still_zoned AS zoned;
        CREATE TABLE t (id int PRIMARY KEY, a sale, b holiday, c mind, d more_flags, e still_zoned)
    """)
    with connect(source_url) as connection:
        (table,) = captured_tables(connection, make_config())
    found = {c.name: (c.type, c.pg.length, c.pg.scale) for c in table.columns if c.arrives}
    assert found == {
        "id": ("int", None, None),
        "a": ("string", 8, 2),
        "b": ("date", None, None),
        "c": ("string", None, None),
        "d": ("string", 5, None),
    }


def test_columns_that_do_not_arrive(source_url: str, sql: Sql, make_config: Maker) -> None:
    sql("""
        CREATE TYPE pair AS (a int, b text);
        CREATE DOMAIN short AS varchar(8);
        CREATE TABLE t (
            id int PRIMARY KEY, double int GENERATED ALWAYS AS (id * 2) STORED,
            at_lsn pg_lsn, couple pair, spans int4multirange, ident name, place point,
            grid int[][], flags bool[], prices numeric[], wide bit(1000), rooms varbit,
            ok_bit bit, ok_tags text[], ok_short short, ok_ids uuid[],
            ok_amount numeric(12, 4), with_offset timetz, took interval
        )
    """)
    config = make_config()
    found = warnings(source_url, config)
    prefix = f"{config.name}.t."
    lost = {k.removeprefix(prefix) for k, text in found.items() if "will not arrive" in text}
    assert lost == {"double", "place", "grid", "flags", "prices", "wide", "rooms", "with_offset"}
    assert found[f"{prefix}took"] == "arrives, but an infinite one arrives as 00:00:00"
    with connect(source_url) as connection:
        (table,) = captured_tables(connection, config)
    arriving = {column.name: column.type for column in table.columns if column.arrives}
    assert arriving == {
        "id": "int",
        "ok_bit": "string",
        "ok_tags": "array<string>",
        "ok_short": "string",
        "ok_ids": "array<string>",
        "ok_amount": "decimal(12,4)",
        **dict.fromkeys(("at_lsn", "couple", "spans", "ident", "took"), "string"),
    }
