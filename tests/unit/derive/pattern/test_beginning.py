"""A row is passed over only where no variable that can be first takes it."""

import pytest

from cdc.derive.pattern.beginning import beginning
from tests.unit.derive.pattern.reading import read_text

P, Q = {"p", "pq"}, {"q", "pq"}
ALL = {"", "p", "q", "pq"}
"""Rows, named by the columns that are true in them."""


@pytest.mark.parametrize("other", [False, None])
@pytest.mark.parametrize(
    ("pattern", "define", "begins"),
    [
        ("a b", "a AS p, b AS q", P),
        ("a b", "a AS p AND q", P & Q),
        ("a b", "a AS p AND prev(q)", P),
        ("a b", "a AS p AND prev(q) AND q", P & Q),
        ("a b", "a AS p AND prev(p) OR q", ALL),
        ("a b", "a AS prev(p) AND NOT prev(q)", ALL),
        ("a? b", "a AS p, b AS q", P | Q),
        ("a* b", "a AS p", ALL),
        ("(b | a) a", "a AS p, b AS q", P | Q),
        ("(a b)+ c", "a AS p, b AS q", P),
        ("a{2} b", "a AS p, b AS q", P),
    ],
)
def test_what_may_begin_a_match(
    pattern: str, define: str, begins: set[str], other: bool | None
) -> None:
    found = read_text(
        f"SELECT * FROM s.t MATCH_RECOGNIZE (ORDER BY n MEASURES n AS n PATTERN ({pattern}) "
        f"DEFINE {define})"
    ).pattern
    may_begin = beginning(found.program, dict(found.conditions))

    assert {row for row in ALL if may_begin([_value(c, row, other) for c in found.columns])} == (
        begins
    )


def _value(text: str, true: str, other: bool | None) -> bool | None:
    """Return what DuckDB gives for a column, or for several joined by AND."""
    return True if all(name.strip('()"') in true for name in text.split(" AND ")) else other
