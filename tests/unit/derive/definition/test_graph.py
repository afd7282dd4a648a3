"""Definitions are put in order, and their names are checked."""

import itertools
from pathlib import Path

from cdc.derive.definition.definition import Definition
from cdc.derive.definition.folder import read_definitions
from cdc.derive.definition.graph import in_order
from cdc.derive.definition.names import unknown_inputs
from cdc.tables import TableId
from tests.unit.derive.definition.reading import definition

ORDERS = TableId("shop", "orders")


def derived(name: str, *inputs: str) -> Definition:
    tables = " CROSS JOIN\n".join(inputs)
    return definition(f"SELECT 1 AS x FROM {tables}", f"{name}.sql")


def names(definitions: list[Definition]) -> list[str]:
    return [str(each.table) for each in definitions]


def test_a_table_comes_after_its_inputs() -> None:
    order, problems = in_order(
        [derived("m.a", "m.b", "m.c"), derived("m.b", "m.c"), derived("m.c", "shop.orders")]
    )

    assert names(order) == ["m.c", "m.b", "m.a"]
    assert problems == []


def test_a_circle_is_named_with_its_place() -> None:
    order, problems = in_order(
        [derived("m.a", "shop.orders", "m.b"), derived("m.b", "m.c"), derived("m.c", "m.a")]
    )

    assert order == []
    (problem,) = problems
    circle = problem.message.removeprefix("the tables read each other: ").split(" -> ")
    assert circle[0] == circle[-1]
    assert set(circle) == {"m.a", "m.b", "m.c"}
    reads = {"m.a": "m.b", "m.b": "m.c", "m.c": "m.a"}
    assert all(reads[one] == other for one, other in itertools.pairwise(circle))
    assert (problem.line == 2) == (problem.file == "m.a.sql")


def test_a_table_that_reads_itself_is_a_circle() -> None:
    _, problems = in_order([derived("m.a", "m.a")])

    assert problems[0].message == "the tables read each other: m.a -> m.a"


def test_the_depth_is_limited() -> None:
    chain = [derived("m.t1", "shop.orders")]
    chain += [derived(f"m.t{i}", f"m.t{i - 1}") for i in range(2, 10)]

    order, problems = in_order(chain)

    assert names(order) == names(chain)
    assert [(each.file, each.message) for each in problems] == [
        ("m.t9.sql", "it is at depth 9 of derived tables, and may be at 8")
    ]


def test_the_number_is_limited() -> None:
    _, none = in_order([derived(f"m.t{i}", "shop.orders") for i in range(50)])
    _, problems = in_order([derived(f"m.t{i}", "shop.orders") for i in range(51)])

    assert none == []
    assert problems[0].message == "there are 51 derived tables, and may be 50"


def test_an_unknown_input_has_its_place_and_a_similar_name() -> None:
    found = unknown_inputs([derived("m.a", "shop.orders", "shop.ordrs")], {ORDERS})

    assert [str(each) for each in found] == ["m.a.sql:2:1: no table shop.ordrs"]
    assert found[0].remedy == "did you mean shop.orders?"


def test_an_input_may_be_derived() -> None:
    assert unknown_inputs([derived("m.a", "m.b"), derived("m.b", "shop.orders")], {ORDERS}) == []


def test_the_name_of_a_captured_table_is_taken() -> None:
    found = unknown_inputs([derived("shop.orders", "shop.orders")], {ORDERS})

    assert [str(each) for each in found] == ["shop.orders.sql:1:1: shop.orders is a captured table"]


def test_a_folder_is_read_by_name(tmp_path: Path) -> None:
    (tmp_path / "m.b.sql").write_text("SELECT a FROM s.t")
    (tmp_path / "m.a.sql").write_text("SELECT a FROM s.t")
    (tmp_path / "m.c.sql").write_text("SELECT * FROM s.t")
    (tmp_path / "m.d.sql").write_bytes(b"\xff")
    (tmp_path / "m.e.sql").mkdir()
    (tmp_path / "README.md").write_text("not a definition")

    definitions, problems = read_definitions(tmp_path)

    assert names(definitions) == ["m.a", "m.b"]
    assert [each.message for each in problems] == [
        "SELECT * is refused",
        "it is not text in UTF-8",
        "it cannot be read: is a directory",
    ]
    assert definitions[0].file == str(tmp_path / "m.a.sql")


def test_a_missing_folder_has_no_definitions(tmp_path: Path) -> None:
    assert read_definitions(tmp_path / "derived") == ([], [])
