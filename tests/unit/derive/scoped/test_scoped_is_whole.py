"""Hazard 53: a scoped step has the rows of the whole query, whatever is defined and changes."""

from hypothesis import HealthCheck, given, settings

from cdc.derive.scope.scope import Scope
from tests.unit.derive.scoped.grammar import World, queries, worlds
from tests.unit.derive.scoped.kept_rows import KeptRows, defined, scope_in_shop


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(query=queries(), cuts=worlds(3))
def test_any_query_and_any_change(query: str, cuts: list[World]) -> None:
    definition = defined(query)
    scope = scope_in_shop(definition)
    assert isinstance(scope, Scope), (scope, query)
    kept = KeptRows(definition, scope)
    kept.build(cuts[0])
    for world in cuts[1:]:
        kept.step(world)
        assert kept.rows() == kept.expected()
