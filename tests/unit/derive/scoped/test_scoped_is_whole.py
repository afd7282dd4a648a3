"""Hazard 53: a scoped step has the rows of the whole query, whatever is defined and changes."""

from hypothesis import given, settings

from cdc.derive.scope.scope import Scope
from tests.unit.derive.scoped.grammar import World, queries, row_queries, worlds
from tests.unit.derive.scoped.kept_rows import KeptRows, defined, scope_in_shop

EXAMPLES = settings().max_examples // 4
"""Of a hundred, or with --deep of thousands: each is several cuts."""


@settings(max_examples=EXAMPLES, deadline=None)
@given(query=queries(), cuts=worlds(3))
def test_any_query_and_any_change(query: str, cuts: list[World]) -> None:
    assert_every_step_is_whole(query, cuts)


@settings(max_examples=EXAMPLES, deadline=None)
@given(query=row_queries(), cuts=worlds(3))
def test_any_query_of_single_rows(query: str, cuts: list[World]) -> None:
    assert assert_every_step_is_whole(query, cuts).by_row, query


def assert_every_step_is_whole(query: str, cuts: list[World]) -> Scope:
    """Compare the rows at each cut with the whole query; return the scope."""
    definition = defined(query)
    scope = scope_in_shop(definition)
    assert isinstance(scope, Scope), (scope, query)
    kept = KeptRows(definition, scope)
    kept.build(cuts[0])
    for world in cuts[1:]:
        kept.step(world)
        assert kept.rows() == kept.expected()
    return scope
