"""Text is ordered by its bytes where its order matters."""

from cdc.derive.sql.collation import text_ordered
from tests.unit.derive.definition.reading import definition

QUERY = definition(
    "SELECT o.a, min(o.t) AS low, max(o.n) AS high, greatest(o.t, 'm') AS g "
    "FROM s.t AS o WHERE o.t < 'x' AND o.t = 'y' AND o.t LIKE 'z%' GROUP BY o.a, o.t"
).postgres


def test_text_gets_the_collation_where_it_is_ordered() -> None:
    ordered = text_ordered(QUERY, ["t"])

    assert 'MIN(("o"."t" COLLATE "C"))' in ordered
    assert 'GREATEST(("o"."t" COLLATE "C"), \'m\')' in ordered
    assert '("o"."t" COLLATE "C") < \'x\'' in ordered
    assert ordered.count("COLLATE") == 3


def test_other_columns_stay_as_they_are() -> None:
    assert "COLLATE" not in text_ordered(QUERY, ["n2"])
    assert 'MAX("o"."n")' in text_ordered(QUERY, ["t"])
