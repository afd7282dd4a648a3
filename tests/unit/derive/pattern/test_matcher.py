"""The matcher finds what the text of a pattern says."""

import pytest

from cdc.derive.pattern import matcher as matcher_module
from cdc.derive.pattern.matcher import Budget, Condition, Matcher, Skip
from cdc.derive.pattern.pattern_text import parse
from cdc.derive.pattern.program import compiled
from cdc.derive.pattern.running import Running
from cdc.errors import CdcError


def found(text: str, rows: str, **more: object) -> list[str]:
    """Match rows of one letter each; a variable takes the rows of its own letter, x takes any."""
    pattern = parse(text)

    def takes(name: str) -> Condition:
        return lambda rows, at, _: rows[at][0] == name

    facts: dict[str, object] = {
        "program": compiled(pattern),
        "conditions": {name: takes(name) for name in "abc"},
        "running": Running((), ("a", "b", "c", "x", "y")),
        "remembers": False,
    }
    one = Matcher(**{**facts, **more})  # type: ignore[arg-type]
    times = [i * 10 for i in range(len(rows))]
    return [
        f"{match.first}{''.join(match.variables)}"
        for match in one.matches([(each,) for each in rows], times, Budget())
    ]


@pytest.mark.parametrize(
    ("text", "rows", "matches"),
    [
        ("a b c", "abcabc", ["0abc", "3abc"]),
        ("a b* c", "abbbcac", ["0abbbc", "5ac"]),
        ("a x* c", "abcbc", ["0axxxc"]),
        ("a x*? c", "abcbc", ["0axc"]),
        ("a x+", "abc", ["0axx"]),
        ("a x+?", "abc", ["0ax"]),
        ("a x?? b", "abb", ["0ab"]),
        ("a x? b", "abb", ["0axb"]),
        ("a{2}", "aaaaa", ["0aa", "2aa"]),
        ("a{2,}", "aaaaa", ["0aaaaa"]),
        ("a{2,}?", "aaaaa", ["0aa", "2aa"]),
        ("a{1,3} b", "aaaab", ["1aaab"]),
        ("a{,2} b", "aab", ["0aab"]),
        ("(a | a b) c", "abc", ["0abc"]),
        ("(x | a) b", "ab", ["0xb"]),
        ("(a b)+", "ababa", ["0abab"]),
        ("a | b c | c", "cbca", ["0c", "1bc", "3a"]),
    ],
)
def test_quantifiers_and_alternatives(text: str, rows: str, matches: list[str]) -> None:
    assert found(text, rows) == matches


@pytest.mark.parametrize(
    ("skip", "target", "matches"),
    [
        (Skip.PAST_LAST_ROW, "", ["0aabb", "4ab"]),
        (Skip.TO_NEXT_ROW, "", ["0aabb", "1abb", "4ab"]),
        (Skip.TO_FIRST, "b", ["0aabb", "4ab"]),
        (Skip.TO_LAST, "b", ["0aabb", "4ab"]),
    ],
)
def test_where_the_next_match_is_looked_for(skip: Skip, target: str, matches: list[str]) -> None:
    assert found("a+ b+", "aabbab", skip=skip, target=target) == matches


def test_it_may_begin_again_within_a_match() -> None:
    assert found("a x b", "aabbb", skip=Skip.TO_FIRST, target="x") == ["0axb", "1axb"]
    assert found("a x{2}", "aaaa", skip=Skip.TO_FIRST, target="x") == ["0axx", "1axx"]
    assert found("a x{2}", "aaaa", skip=Skip.TO_LAST, target="x") == ["0axx"]


@pytest.mark.parametrize(("within", "matches"), [(19, []), (20, ["0axb"]), (None, ["0axb"])])
def test_a_match_may_last_exactly_as_long(within: int | None, matches: list[str]) -> None:
    assert found("a x b", "acb", within=within) == matches


def test_what_led_to_nothing_in_one_window_may_be_in_the_next() -> None:
    assert found("a x* c", "aac", within=10) == ["1ac"]


def test_a_way_of_a_hundred_thousand_rows_is_no_problem() -> None:
    """Hazard 28: the machine keeps its own stack, and steps grow with the rows."""
    assert found("a b* c", "a" + "b" * 99_999) == []
    assert [len(one) for one in found("a b*", "a" + "b" * 99_999)] == [100_001]


def test_what_led_to_nothing_is_not_tried_again() -> None:
    """Backtracking alone would take 2 to the power of 60 steps."""
    assert found("(a | x)+ c", "a" * 60) == []
    assert found("a x* c", "a" * 5_000) == []


def test_too_many_steps_stop_it_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher_module, "STEPS", 10_000)

    with pytest.raises(CdcError, match="its pattern needs more than 1,000 steps per row"):
        found("(a | x)+ c", "a" * 60, remembers=True)


def test_the_budget_is_of_all_rows_together() -> None:
    budget = Budget()
    budget.add(3)

    assert budget.left == matcher_module.STEPS + 3 * matcher_module.STEPS_PER_ROW
