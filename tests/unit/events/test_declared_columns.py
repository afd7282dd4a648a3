"""Tests of which columns arrive, given what the catalogue declares."""

import pytest

from cdc.config import Config, Lake, Source
from cdc.errors import CdcError
from cdc.events.structure.declared import DeclaredType, SourceColumn, source_column
from cdc.events.values.lake_types import lake_type
from cdc.events.values.pg_types import TYPES, Fidelity
from cdc.source.catalog.text_choice import text_findings, with_text
from cdc.tables import TableId

TABLE = TableId("shop", "orders")


def column(declared: DeclaredType, name: str = "c") -> SourceColumn:
    return source_column(name, declared, not_null=False, generated=False)


def base(name: str, modifier: int = -1) -> DeclaredType:
    return DeclaredType(name=name, kind="b", modifier=modifier)


def array(element: str, kind: str = "b", dimensions: int = 1) -> DeclaredType:
    return DeclaredType(
        name=f"_{element}", kind="b", element=element, element_kind=kind, dimensions=dimensions
    )


def domain(name: str, kind: str = "b", *, called: str = "mine", modifier: int = -1) -> DeclaredType:
    return DeclaredType(name=name, kind=kind, domain=called, modifier=modifier)


@pytest.mark.parametrize("name", [name for name in TYPES if not name.startswith("(")])
def test_a_type_arrives_unless_the_table_of_types_refuses_it(name: str) -> None:
    found = column(base(name))

    assert found.arrives is (TYPES[name].fidelity is not Fidelity.REFUSED)
    assert found.arrives or found.reason == TYPES[name].note


@pytest.mark.parametrize("name", [name for name in TYPES if not name.startswith("(")])
def test_an_array_arrives_if_the_table_of_types_says_so(name: str) -> None:
    found = column(array(name))

    assert found.arrives is TYPES[name].arrays
    assert found.arrives or found.reason


@pytest.mark.parametrize(
    ("declared", "spark"),
    [
        (DeclaredType(name="mood", kind="e"), "string"),
        (DeclaredType(name="pair", kind="c"), "string"),
        (DeclaredType(name="span", kind="r"), "string"),
        (DeclaredType(name="spans", kind="m"), "string"),
        (DeclaredType(name="int4range", kind="r"), "string"),
        (base("a_type_of_an_extension"), "string"),
        (domain("int4"), "int"),
        (domain("int2"), "int"),
        (domain("oid"), "bigint"),
        (domain("date"), "date"),
        (domain("numeric", modifier=(10 << 16 | 2) + 4), "string"),
        (domain("bit", modifier=5), "string"),
        (domain("mood", "e"), "string"),
        (domain("pair", "c"), "string"),
        (base("numeric", (5 << 16 | (-2 & 0x7FF)) + 4), "decimal(7,0)"),
    ],
)
def test_user_defined_types_arrive(declared: DeclaredType, spark: str) -> None:
    found = column(declared)

    assert (found.arrives, found.type, found.reason) == (True, spark, "")
    assert lake_type(found.pg).spark == spark


@pytest.mark.parametrize(
    "declared",
    [
        base("bit", 129),
        array("int4", dimensions=2),
        array("mood", "e"),
        array("posint", "d"),
        array("pair", "c"),
        domain("bytea"),
        domain("bit", modifier=1),
        domain("bit", modifier=500),
        domain("timetz"),
        DeclaredType(name="_int4", kind="b", element="int4", element_kind="b", domain="ints"),
        domain("int4", called="money"),
        DeclaredType(name="point", kind="e"),
        DeclaredType(name="Interval", kind="c"),
    ],
)
def test_a_type_that_the_connector_would_alter_does_not_arrive(declared: DeclaredType) -> None:
    found = column(declared)

    assert not found.arrives
    assert found.reason


def test_a_generated_column_does_not_arrive() -> None:
    found = source_column("c", base("int4"), not_null=True, generated=True)

    assert not found.arrives


COLUMNS = {
    TABLE: (
        column(base("numeric", (10 << 16 | 2) + 4), "total"),
        column(base("date"), "due"),
        column(base("text"), "note"),
        column(base("numeric"), "factor"),
    )
}


def test_the_columns_that_a_pattern_names_are_text() -> None:
    found = with_text(COLUMNS, ["shop.orders.d*", "shop.*.total", "*.note"])[TABLE]

    assert [(c.name, c.type, c.is_text) for c in found] == [
        ("total", "string", True),
        ("due", "string", True),
        ("note", "string", False),
        ("factor", "string", False),
    ]


def test_a_pattern_without_effect_is_named() -> None:
    found = text_findings(COLUMNS, ["shop.orders.due", "shop.orders.note", "shop.orders.gone"])

    assert [(finding.subject, "matches no" in finding.message) for finding in found] == [
        ("shop.orders.note", False),
        ("shop.orders.gone", True),
    ]


@pytest.mark.parametrize("pattern", ["orders.total", "shop..total", "total", "shop.orders."])
def test_a_pattern_has_three_parts(pattern: str) -> None:
    with pytest.raises((CdcError, ValueError), match=r"schema\.table\.column"):
        Config(
            source=Source.model_validate({"tables": ["shop.*"], "as_text": [pattern]}),
            lake=Lake(path="/lake"),
        )
