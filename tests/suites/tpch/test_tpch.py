"""TPC-H's queries have at every cut the rows that their own text gives, while it is refreshed."""

from pathlib import Path
from typing import Final

import pytest

from tests.suites.kept import SCOPED, allowed_ways, classes, defined, differing, kept_through, ways
from tests.suites.tpch import by_hand
from tests.suites.tpch.queries import QUERIES
from tests.suites.tpch.tables import cuts, schemas

SCALE: Final = 0.002
_LARGE: Final = 0.02
_ALL: Final = "as a whole: it aggregates all rows: it has no GROUP BY"
_ORDER: Final = "as a whole: shop.supplier is joined without an equality of columns"
_VALUE: Final = "as a whole: a condition of WHERE has a subquery that is not EXISTS or IN"
_ASKED: Final = (
    "as a whole: a condition asks a subquery with joins, groups or subqueries of its own"
)
FEWEST: Final = 5
"""So many tables are kept by their scope keys in the smallest test."""
CLASSES: Final[dict[str, str]] = {
    "q1": f"{SCOPED}: l_returnflag, l_linestatus",
    "q2": _ORDER,
    "q3": f"{SCOPED}: l_orderkey, o_orderdate, o_shippriority",
    "q4": f"{SCOPED}: o_orderpriority",
    "q5": f"{SCOPED}: n_name",
    "q6": _ALL,
    "q7": f"{SCOPED}: supp_nation, cust_nation, l_year",
    "q8": _ORDER,
    "q9": _ORDER,
    "q10": f"{SCOPED}: c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment",
    "q11": "as a whole: a subquery is a value: derive it as a table, and join it",
    "q12": f"{SCOPED}: l_shipmode",
    "q13": "as a whole: no output column is one of GROUP BY and every PARTITION BY",
    "q14": _ALL,
    "q15": "as a whole: a subquery in FROM has other tables beside it: derive it as a table",
    "q16": _VALUE,
    "q17": _VALUE,
    "q18": _ASKED,
    "q19": "as a whole: shop.part is joined without an equality of columns",
    "q20": _ASKED,
    "q21": f"{SCOPED}: s_name",
    "q22": _VALUE,
}


def test_each_query_is_kept_as_it_is_listed() -> None:
    assert classes(QUERIES, schemas(SCALE)) == CLASSES


@pytest.mark.parametrize(
    ("scale", "seed", "count"),
    [
        pytest.param(SCALE, 7, 3, id="small"),
        *(
            pytest.param(_LARGE, seed, 10, id=f"{seed}", marks=pytest.mark.deep)
            for seed in range(3)
        ),
    ],
)
def test_every_cut_equals_the_text(tmp_path: Path, scale: float, seed: int, count: int) -> None:
    definitions, tables = defined(QUERIES), schemas(scale)
    for world, entries in kept_through(tmp_path, definitions, tables, cuts(scale, seed, count)):
        assert differing(world, tables, entries, by_hand.QUERIES) == []
        assert [name for name, entry in entries.items() if not entry.rows] == []

    found = {name: ways(entry) for name, entry in entries.items()}
    assert {name for name, way in found.items() if way - allowed_ways(CLASSES[name])} == set()
    assert sum(SCOPED in way for way in found.values()) > FEWEST
