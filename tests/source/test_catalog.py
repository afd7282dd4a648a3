"""What the catalogue of a real Postgres makes of the tables that are named."""

from collections.abc import Callable

import pytest
from psycopg import sql as sql_module

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.source.captured import captured_tables
from cdc.source.catalog import inspect
from cdc.source.finding import Level
from cdc.source.postgres import connect
from cdc.source.prepare import prepare
from cdc.tables import TableId, TableMode
from tests.source.conftest import Maker

pytestmark = pytest.mark.integration

Sql = Callable[[str], object]


def errors(url: str, config: Config) -> list[tuple[str, str]]:
    with connect(url) as connection:
        found = inspect(connection, config).findings
    return [(f.subject, f.message) for f in found if f.level is Level.ERROR]


def warnings(url: str, config: Config) -> dict[str, str]:
    with connect(url) as connection:
        found = inspect(connection, config).findings
    return {f.subject: f.message for f in found if f.level is Level.WARNING}


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


def test_without_key_and_choice(source_url: str, sql: Sql, make_config: Maker) -> None:
    sql("CREATE TABLE loose (x int)")
    config = make_config()
    with connect(source_url) as connection, pytest.raises(CdcError) as caught:
        captured_tables(connection, config)
    assert caught.value.kind is ErrorKind.SOURCE_NOT_READY
    assert caught.value.message.startswith(f"{config.name}.loose: has no usable primary key")
    for remedy in ("add a primary key", "REPLICA IDENTITY FULL", "source.append_only"):
        assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE TABLE t (id int PRIMARY KEY DEFERRABLE)", "has no usable primary key"),
        (
            "CREATE TABLE t (id int PRIMARY KEY); ALTER TABLE t REPLICA IDENTITY NOTHING",
            "has REPLICA IDENTITY NOTHING",
        ),
        (
            """CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL UNIQUE);
            ALTER TABLE t REPLICA IDENTITY USING INDEX t_n_key""",
            "its replica identity is an index without",
        ),
        ("CREATE UNLOGGED TABLE t (id int PRIMARY KEY)", "is unlogged"),
        ('CREATE TABLE t (id int PRIMARY KEY, a int, "A" int)', "columns a and A have one name"),
        ('CREATE TABLE t (id int PRIMARY KEY, "ä" int, "ö" int)', "columns ä and ö have one name"),
        ("CREATE TABLE t (id int PRIMARY KEY, _cdc_offset int)", "column _cdc_offset: names that"),
        (
            'CREATE TABLE t (id int PRIMARY KEY, "_metadata" int)',
            "column _metadata: Spark and Delta call a column of their own so",
        ),
        (
            'CREATE TABLE t (id int PRIMARY KEY, "deletionVectorId" int)',
            "column deletionVectorId: Spark and Delta call a column of their own so",
        ),
        ('CREATE TABLE t ("9" int PRIMARY KEY, _9 int)', "columns 9 and _9 have one name"),
        ('CREATE TABLE t (i int PRIMARY KEY, "\u0131" int)', "columns i and \u0131 have one name"),
        ('CREATE TABLE "_delta_log" (id int PRIMARY KEY)', "a directory _delta_log is a part of"),
        ("CREATE TABLE t (id timetz PRIMARY KEY)", "is part of the key and will not arrive"),
        ('CREATE TABLE "t t" (id int PRIMARY KEY)', "has a name that cannot be a topic's"),
        ("CREATE TABLE t (); ALTER TABLE t REPLICA IDENTITY FULL", "has no columns"),
        (
            "CREATE TABLE t (p point); ALTER TABLE t REPLICA IDENTITY FULL",
            "has no column that arrives",
        ),
    ],
)
def test_refused(
    source_url: str, sql: Sql, make_config: Maker, statement: str, message: str
) -> None:
    sql(statement)
    found = errors(source_url, make_config())
    assert len(found) == 1
    assert found[0][1].startswith(message)


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

    assert {table.table.name: table.published for table in tables} == {"other": True, "t": True}


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
        found = {t.table.name: t.published for t in inspect(connection, config).tables}
        view = connection.execute(
            "SELECT tablename FROM pg_publication_tables WHERE pubname = %s AND schemaname = %s",
            (config.name, schema),
        ).fetchall()

    assert found == published
    assert {name for (name,) in view} == {name for name, there in published.items() if there}


def test_pattern_without_table(source_url: str, sql: Sql, make_config: Maker) -> None:
    sql("CREATE TABLE t (id int PRIMARY KEY)")
    config = make_config(tables=["pattern_without_table.t", "elsewhere.*"])
    assert errors(source_url, config) == [
        ("elsewhere.*", "this pattern of source.tables names no table that the role can see")
    ]


def test_a_type_with_a_namesake(source_url: str, sql: Sql, make_config: Maker) -> None:
    """The connector takes one for the other: dates of the schema would be lost without a word."""
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


def test_rights_of_the_role(source_url: str, sql: Sql, make_config: Maker) -> None:
    config = make_config()
    sql(f"""
        CREATE ROLE reader LOGIN PASSWORD 'reader';
        GRANT USAGE ON SCHEMA {config.name} TO reader;
        CREATE TABLE hidden (id int PRIMARY KEY);
        CREATE TABLE rows (id int PRIMARY KEY);
        ALTER TABLE rows ENABLE ROW LEVEL SECURITY;
        GRANT SELECT ON rows TO reader;
        CREATE TABLE open (id int PRIMARY KEY);
        GRANT SELECT ON open TO reader;
    """)
    assert errors(source_url, config) == []  # the superuser sees everything
    as_reader = f"postgresql://reader:reader@{source_url.partition('@')[2]}"
    found = dict(errors(as_reader, config))
    assert set(found) == {f"{config.name}.hidden", f"{config.name}.rows"}
    assert found[f"{config.name}.hidden"] == "the role may not read it"
    assert found[f"{config.name}.rows"].startswith("row security applies")


def test_a_table_whose_topic_kafka_takes_for_that_of_another(
    source_url: str, sql: Sql, make_config: Maker
) -> None:
    """The one that was made later is named; once it is there, it goes on."""
    name = make_config().name
    sql(f"""
        DROP SCHEMA IF EXISTS {name}_b CASCADE; CREATE SCHEMA {name}_b;
        CREATE TABLE b_c (id int PRIMARY KEY); CREATE TABLE {name}_b.c (id int PRIMARY KEY);
    """)
    config = make_config(tables=[f"{name}.*", f"{name}_b.*"])
    tables = [TableId(name, "b_c"), TableId(f"{name}_b", "c")]

    ((subject, message),) = errors(source_url, config)

    assert subject == str(tables[1])
    assert message.startswith(f"Kafka takes its topic for that of {tables[0]}")
    with connect(source_url) as connection:
        with pytest.raises(CdcError):
            captured_tables(connection, config)
        assert [t.table for t in captured_tables(connection, config, tables[:1])] == tables[:1]
        known = captured_tables(connection, config, tables)
    assert [(t.table, t.unfit) for t in known] == [(table, None) for table in tables]


def test_tables_that_differ_only_by_case_are_told(
    source_url: str, sql: Sql, make_config: Maker
) -> None:
    sql('CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE "T" (id int PRIMARY KEY)')
    config = make_config()

    assert errors(source_url, config) == []
    assert list(warnings(source_url, config)) == [f"{config.name}.T"]


def test_a_table_is_not_refused_for_another_whose_name_begins_with_its_own(
    source_url: str, sql: Sql, make_config: Maker
) -> None:
    sql('CREATE TABLE a (id int PRIMARY KEY, "b" int)')
    config = make_config()
    known = [TableId(config.name, "a")]
    sql('CREATE TABLE "a.b" (id point)')

    with connect(source_url) as connection:
        (found,) = captured_tables(connection, config, known)

    assert found.table == known[0]
    assert found.unfit is None
