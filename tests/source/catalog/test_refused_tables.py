"""Test which tables, patterns and names are refused after a look at a real catalogue."""

import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.source.catalog.captured import captured_tables
from cdc.source.server.connection import connect
from cdc.tables import TableId
from tests.source.conftest import Maker, Sql
from tests.source.findings import errors, warnings

pytestmark = pytest.mark.integration


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
            "column _metadata: Spark and Delta have a column of their own with this name",
        ),
        (
            'CREATE TABLE t (id int PRIMARY KEY, "deletionVectorId" int)',
            "column deletionVectorId: Spark and Delta have a column of their own with this name",
        ),
        ('CREATE TABLE t ("9" int PRIMARY KEY, _9 int)', "columns 9 and _9 have one name"),
        ('CREATE TABLE t (i int PRIMARY KEY, "\u0131" int)', "columns i and \u0131 have one name"),
        (
            'CREATE TABLE "_delta_log" (id int PRIMARY KEY)',
            "a directory _delta_log is reserved for",
        ),
        ("CREATE TABLE t (id timetz PRIMARY KEY)", "is part of the key and will not arrive"),
        ('CREATE TABLE "t t" (id int PRIMARY KEY)', "has a name that a Kafka topic cannot have"),
        ("CREATE TABLE t (); ALTER TABLE t REPLICA IDENTITY FULL", "has no columns"),
        (
            "CREATE TABLE t (p point); ALTER TABLE t REPLICA IDENTITY FULL",
            "has no column that can be captured",
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


def test_pattern_without_table(source_url: str, sql: Sql, make_config: Maker) -> None:
    sql("CREATE TABLE t (id int PRIMARY KEY)")
    config = make_config(tables=["pattern_without_table.t", "elsewhere.*"])
    assert errors(source_url, config) == [
        ("elsewhere.*", "this pattern in source.tables matches no table that the role can see")
    ]


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
    """The finding names the table created later; a captured one continues."""
    name = make_config().name
    sql(f"""
        DROP SCHEMA IF EXISTS {name}_b CASCADE; CREATE SCHEMA {name}_b;
        CREATE TABLE b_c (id int PRIMARY KEY); CREATE TABLE {name}_b.c (id int PRIMARY KEY);
    """)
    config = make_config(tables=[f"{name}.*", f"{name}_b.*"])
    tables = [TableId(name, "b_c"), TableId(f"{name}_b", "c")]

    ((subject, message),) = errors(source_url, config)

    assert subject == str(tables[1])
    assert message.startswith(f"Kafka confuses its topic with that of {tables[0]}")
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
