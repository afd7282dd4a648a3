"""Names that the systems in between cannot have are refused, and every other is accepted."""

import json
from itertools import combinations

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.events.names import (
    OF_ENGINES,
    avro_name,
    case_twins,
    column_refusals,
    readable_schema,
    table_collisions,
    table_refusal,
)
from cdc.events.schema import belongs_to
from cdc.tables import TableId

TABLE = TableId("shop", "orders")
KEPT = [
    *("before", "after", "op", "source", "ts_ms", "transaction", "key", "value", "offset"),
    *("partition", "timestamp", "topic", "row", "at", "gone", "one", "target", "filepath"),
    *("_change_type", "_commit_version", "_commit_timestamp", "__op", "9a", "0", "é", "😀"),
    *("a b", "a.c", "a;d", "a,e", "a{f}", "(g)", "a\th", "a\ni", "j=", "${env:HOME}", "k'", 'l"'),
]
names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=63
)


def reasons(*columns: str) -> list[str]:
    return [refusal.reason for refusal in column_refusals(TABLE, columns)]


def test_words_used_by_the_systems_in_between_are_ordinary_names() -> None:
    assert reasons(*KEPT) == []


@pytest.mark.parametrize("name", sorted(OF_ENGINES))
@pytest.mark.parametrize("spelled", [str.lower, str.upper])
def test_a_column_of_the_engines_own_is_named(name: str, spelled: type[str]) -> None:
    (reason,) = reasons("id", spelled(name))

    assert reason.startswith(f"column {spelled(name)}: Spark and Delta have a column of their own")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "A"),
        ("a-b", "a b"),
        ("é", "ü"),
        ("9", "_9"),
        ("😀", "__"),
        ("😀", "é-"),
        ("Ä", "ä"),
        ("\u0131", "I"),
        ("\u0130", "i"),
        ("\u212a", "k"),
    ],
)
def test_two_columns_of_one_name_are_named(one: str, other: str) -> None:
    assert reasons(one, other) == [
        f"columns {one} and {other} have one name in Avro or in the lake"
    ]


@given(names)
def test_a_name_is_valid_in_avro(name: str) -> None:
    """It has at most one character per UTF-16 unit, and one more before a digit."""
    in_avro = avro_name(name)

    assert fastavro.parse_schema(
        {"type": "record", "name": "r", "fields": [{"name": in_avro, "type": "int"}]}
    )
    assert len(in_avro) - in_avro.startswith("_") <= len(name.encode("utf-16-be")) // 2


@given(st.lists(names, unique=True, max_size=6))
def test_accepted_names_are_unique_everywhere(columns: list[str]) -> None:
    """They differ in Avro, in Spark, which ignores case, and from our and the engines' columns."""
    if reasons(*columns):
        return
    assert len({avro_name(name).lower() for name in columns}) == len(columns)
    assert len({name.lower() for name in columns}) == len(columns)
    assert not {name.lower() for name in columns} & OF_ENGINES
    assert not any(name.lower().startswith("_cdc_") for name in columns)


@given(st.lists(names, unique=True, min_size=2, max_size=6))
def test_a_refusal_is_caused_by_one_column_or_by_two(columns: list[str]) -> None:
    """Any refused table has a column or a pair of columns that would be refused alone."""
    alone = any(reasons(name) for name in columns)
    assert bool(reasons(*columns)) == (
        alone or any(reasons(*pair) for pair in combinations(columns, 2))
    )


@pytest.mark.parametrize("name", ["orders", "9lives", "0", "-", "_", "a-b", "Value", "Envelope"])
def test_names_of_tables_that_are_accepted(name: str) -> None:
    assert table_refusal(TableId("shop", name)) is None
    assert table_refusal(TableId(name, "orders")) is None


@pytest.mark.parametrize(
    ("schema", "name", "reason"),
    [
        *(
            ("shop", odd, "has a name that a Kafka topic cannot have")
            for odd in ("a b", "é", "..", "a/b")
        ),
        ("%2e", "t", "has a name that a Kafka topic cannot have"),
        ("_wal2lake", "t", "the lake's directory _wal2lake is reserved for wal2lake"),
        ("_WAL2LAKE", "t", "the lake's directory _wal2lake is reserved for wal2lake"),
        ("shop", "_delta_log", "a directory _delta_log is reserved for Delta"),
    ],
)
def test_names_of_tables_that_are_refused(schema: str, name: str, reason: str) -> None:
    found = table_refusal(TableId(schema, name))

    assert found is not None
    assert found.reason.endswith(reason)


def test_two_tables_that_kafka_gives_one_topic_are_refused_once() -> None:
    first, second = TableId("a_b", "c"), TableId("a", "b_c")
    (found,) = table_collisions([first, TableId("a", "bc"), second])

    assert found.table == second
    assert str(first) in found.reason


def test_tables_that_differ_by_case_are_two() -> None:
    tables = [TableId("shop", "T"), TableId("shop", "t"), TableId("SHOP", "u")]

    assert list(table_collisions(tables)) == []
    assert list(case_twins(tables)) == [(tables[0], tables[1])]


def schema_of(table: TableId) -> str:
    """Return a schema as the connector writes it: a part of a name may begin with a digit."""
    namespace = f"w.{table.schema}.{table.name}"
    row = {"type": "record", "name": "Value", "fields": [{"name": "9x", "type": "int"}][:0]}
    place = {
        "type": "record",
        "name": "Source",
        "namespace": "io.debezium.connector.postgresql",
        "fields": [
            {"name": "schema", "type": "string"},
            {"name": "table", "type": "string"},
            {"name": "lsn", "type": ["null", "long"], "default": None},
        ],
    }
    block = {
        "type": "record",
        "name": "block",
        "namespace": "event",
        "fields": [{"name": "id", "type": "string"}],
    }
    return json.dumps(
        {
            "type": "record",
            "name": "Envelope",
            "namespace": namespace,
            "fields": [
                {"name": "before", "type": ["null", row], "default": None},
                {"name": "after", "type": ["null", f"{namespace}.Value"], "default": None},
                {"name": "source", "type": place},
                {"name": "op", "type": "string"},
                {"name": "transaction", "type": ["null", block], "default": None},
            ],
            "connect.name": f"{namespace}.Envelope",
        }
    )


@pytest.mark.parametrize("table", [TableId("9s", "9lives"), TableId("shop", "0")])
def test_a_schema_whose_name_begins_with_a_digit_becomes_valid_avro(table: TableId) -> None:
    readable = readable_schema(schema_of(table))

    assert fastavro.parse_schema(json.loads(readable))
    assert belongs_to(readable, table.topic("w"))
    assert json.loads(readable)["connect.name"].startswith(f"w.{table}")


def test_any_other_schema_is_returned_unchanged() -> None:
    for text in (schema_of(TABLE), "7", "no JSON"):
        assert readable_schema(text) == text


def test_a_schema_whose_name_begins_with_a_digit_becomes_readable() -> None:
    row = {"type": "record", "name": "Value", "namespace": "p.2s.9lives", "fields": []}
    again = {"name": "after", "type": ["null", "p.2s.9lives.Value"]}
    fields = [{"name": "before", "type": ["null", row]}, again]
    written = {"type": "record", "name": "Envelope", "namespace": "p.2s.9lives", "fields": fields}
    readable = readable_schema(json.dumps(written))
    assert "p._2s._9lives.Value" in readable
    fastavro.parse_schema(json.loads(readable))
    plain = json.dumps(written).replace("2s", "s").replace("9lives", "lives")
    assert readable_schema(plain) == plain
