"""Queries are printed from one tree, which no printer changes."""

import pytest

from cdc.derive.definition.folder import read_definition
from cdc.derive.spark.printing import spark
from cdc.derive.sql import printing
from tests.source.derive.cases import CASES


@pytest.mark.parametrize("name", sorted(CASES))
def test_printers_leave_the_tree_as_it_is(name: str) -> None:
    for text in CASES[name]:
        query = text if text.startswith(("SELECT", "WITH")) else f"SELECT {text} AS x FROM d.v"
        definition, problems = read_definition("m.t.sql", "m.t.sql", query)
        assert definition is not None, problems
        tree = definition.query
        assert tree is not None
        before = tree.copy()

        again = [printing.postgres(tree), printing.duckdb(tree)]
        spark(tree)

        assert tree == before
        assert again == [definition.postgres, definition.duckdb]
