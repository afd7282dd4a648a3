"""Tests of the mapping from Avro fields to Postgres types, and from these to lake types."""

import pytest

from cdc.events.schema import fits
from cdc.events.values.lake_types import (
    SOURCE_LENGTH,
    SOURCE_SCALE,
    SOURCE_TYPE,
    PgType,
    from_avro_field,
    lake_type,
)


@pytest.mark.parametrize(
    ("pg", "spark"),
    [
        (PgType("int2"), "smallint"),
        (PgType("SERIAL"), "int"),
        (PgType("bigserial"), "bigint"),
        (PgType("oid"), "bigint"),
        (PgType("float4"), "float"),
        (PgType("double precision"), "double"),
        (PgType("numeric", 10, 2), "decimal(10,2)"),
        (PgType("numeric", 38, 38), "decimal(38,38)"),
        (PgType("numeric", 39, 2), "string"),
        (PgType("numeric", 131089, 0), "string"),
        (PgType("numeric", 0, None), "string"),
        (PgType("numeric", 5, -2), "decimal(7,0)"),
        (PgType("numeric", 5, 2046), "decimal(7,0)"),
        (PgType("numeric", 30, -9), "string"),
        (PgType("numeric", 2, 5), "decimal(5,5)"),
        (PgType("numeric"), "string"),
        (PgType("time", 15, 6), "string"),
        (PgType("timestamp", 29, 6), "timestamp_ntz"),
        (PgType("timestamptz"), "timestamp"),
        (PgType("bytea"), "binary"),
        (PgType("uuid"), "string"),
        (PgType("bit", 1), "string"),
        (PgType("mood"), "string"),
        (PgType("_int4", 10, 0), "array<int>"),
        (PgType("bit", 128), "string"),
        (PgType("pg_lsn"), "string"),
        (PgType("tstzmultirange"), "string"),
        (PgType("macaddr8"), "string"),
        (PgType("_date"), "array<date>"),
        (PgType("_bytea"), "array<binary>"),
    ],
)
def test_a_type_of_postgres_has_a_type_in_the_lake(pg: PgType, spark: str) -> None:
    found = lake_type(pg)

    assert (found.spark, found.exact, found.refused) == (spark, True, False)


@pytest.mark.parametrize("name", ["money", "hstore"])
def test_a_type_with_another_text_says_so(name: str) -> None:
    found = lake_type(PgType(name))

    assert not found.exact
    assert found.reason
    assert not found.refused


@pytest.mark.parametrize(
    "name",
    [
        *("varbit", "timetz", "point", "regclass", "int2vector", "geometry", "refcursor"),
        *("_bit", "__int4", "_float8", "_numeric", "_timestamp", "_time", "_mood", "_point"),
    ],
)
def test_a_type_that_cannot_be_kept_is_refused_with_a_reason(name: str) -> None:
    found = lake_type(PgType(name))

    assert found.refused
    assert found.reason


def field(avro: object, **noted: str) -> dict[str, object]:
    kind = {"type": avro} if isinstance(avro, str) else dict(avro)  # type: ignore[call-overload]
    return {"name": "c", "type": ["null", {**kind, "connect.parameters": noted}]}


def test_the_declared_type_is_read_from_the_field() -> None:
    noted = {SOURCE_TYPE: "NUMERIC", SOURCE_LENGTH: "10", SOURCE_SCALE: "2"}

    assert from_avro_field(field("string", **noted)) == PgType("numeric", 10, 2)


@pytest.mark.parametrize(
    ("avro", "name"),
    [
        ("int", "int4"),
        ("long", "int8"),
        ("bytes", "(other)"),
        ({"type": "bytes", "connect.name": "io.debezium.data.Bits"}, "bit"),
        ({"type": "string", "connect.name": "io.debezium.time.Interval"}, "interval"),
        ("io.debezium.data.geometry.Point", "point"),
        ({"type": "int", "connect.name": "io.debezium.time.Date"}, "date"),
        ({"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}, "timestamp"),
        ({"type": "array", "items": ["null", "long"]}, "_int8"),
    ],
)
def test_an_unknown_type_is_told_by_its_avro_form(avro: object, name: str) -> None:
    assert from_avro_field(field(avro, **{SOURCE_TYPE: "MY_DOMAIN"})).name == name


def test_an_enum_keeps_its_name_and_is_text() -> None:
    found = from_avro_field(field("string", **{SOURCE_TYPE: "MOOD"}))

    assert (found.name, lake_type(found).spark) == ("mood", "string")


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("smallint", "bigint"),
        ("float", "double"),
        ("decimal(5,2)", "decimal(7,4)"),
        ("string", "string"),
    ],
)
def test_a_wider_type_holds_every_value(narrow: str, wide: str) -> None:
    assert fits(narrow, wide)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("bigint", "int"),
        ("double", "float"),
        ("int", "double"),
        ("int", "string"),
        ("decimal(5,2)", "decimal(6,4)"),
        ("decimal(7,4)", "decimal(9,2)"),
        ("timestamp", "timestamp_ntz"),
    ],
)
def test_a_type_that_would_alter_a_value_does_not_fit(narrow: str, wide: str) -> None:
    assert not fits(narrow, wide)


@pytest.mark.parametrize(
    ("declared", "avro", "name"),
    [
        ("TEXT", "int", "int4"),  # the connector read text in the catalogue; the value is an int
        ("INT4", "string", "text"),
        ("INT4", "long", "int8"),
        ("NUMERIC", "double", "float8"),
        ("INT2", "int", "int2"),
        ("UUID", "string", "uuid"),
        ("NUMERIC", "string", "numeric"),
        ("BIT", "boolean", "bit"),
        ("OID", "long", "oid"),
    ],
)
def test_the_form_of_the_value_overrides_a_declared_type_that_contradicts_it(
    declared: str, avro: str, name: str
) -> None:
    """The catalogue was read at another moment than the value was written."""
    assert from_avro_field(field(avro, **{SOURCE_TYPE: declared})).name == name
