"""The matcher finds the matches that trying every way finds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.derive.pattern.matcher import Budget, Condition, Matcher, Skip
from cdc.derive.pattern.nodes import Choice, Node, Repeat, Sequence, Variable, may_be_empty
from cdc.derive.pattern.program import compiled
from cdc.derive.pattern.running import Running, Seen, Slot
from cdc.errors import CdcError
from tests.unit.derive.pattern import by_hand
from tests.unit.derive.pattern.by_hand import Case, Holds

NAMES = ("a", "b", "c")
SLOTS = (
    Slot(Seen.LAST, "a"),
    Slot(Seen.FIRST, None),
    Slot(Seen.COUNT, "b"),
    Slot(Seen.SUM, None, 0),
    Slot(Seen.MAX, "a", 0),
    Slot(Seen.MIN, None, 0),
)


def last_a(rows: by_hand.Rows, taken: by_hand.Taken) -> int | None:
    found: int | None = next((rows[i][0] for name, i in reversed(taken) if name == "a"), None)
    return found


def values(rows: by_hand.Rows, taken: by_hand.Taken, of: str | None = None) -> list[int]:
    found = [rows[i][0] for name, i in taken if of in {None, name}]
    return [value for value in found if value is not None]


def now(rows: by_hand.Rows, taken: by_hand.Taken) -> int | None:
    found: int | None = rows[taken[-1][1]][0]
    return found


def less(one: object, other: object) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one < other


def with_row(position: object, rows: object) -> object:
    return None if position is None else rows[position][0]  # type: ignore[index]


LOCAL: tuple[tuple[Condition, Holds], ...] = (
    (lambda rows, at, _: rows[at][0] == 1, lambda rows, taken: now(rows, taken) == 1),
    (lambda rows, at, _: less(0, rows[at][0]), lambda rows, taken: less(0, now(rows, taken))),
    (
        lambda rows, at, _: at > 0 and less(rows[at - 1][0], rows[at][0]),
        lambda rows, taken: taken[-1][1] > 0 and less(rows[taken[-1][1] - 1][0], now(rows, taken)),
    ),
)
REMEMBERING: tuple[tuple[Condition, Holds], ...] = (
    (
        lambda rows, at, state: less(with_row(state[0], rows), rows[at][0]),
        lambda rows, taken: less(last_a(rows, taken), now(rows, taken)),
    ),
    (
        lambda rows, at, state: less(rows[at][0], with_row(state[1], rows)),
        lambda rows, taken: less(now(rows, taken), rows[taken[0][1]][0]),
    ),
    (
        lambda _rows, _at, state: less(state[2], 3),
        lambda _, taken: sum(name == "b" for name, _ in taken) < 3,
    ),
    (
        lambda _rows, _at, state: less(state[3], 3),
        lambda rows, taken: bool(values(rows, taken)) and sum(values(rows, taken)) < 3,
    ),
    (
        lambda rows, at, state: less(rows[at][0], state[4]),
        lambda rows, taken: less(now(rows, taken), max(values(rows, taken, "a"), default=None)),
    ),
    (
        lambda rows, at, state: less(state[5], rows[at][0]),
        lambda rows, taken: less(min(values(rows, taken), default=None), now(rows, taken)),
    ),
)
VARIABLES = st.sampled_from(NAMES).map(Variable)


def _repeats(part: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    counts = st.sampled_from([(0, None), (1, None), (0, 1), (2, 2), (1, 2), (2, None), (0, 2)])
    return st.builds(lambda p, c, g: Repeat(p, c[0], c[1], g), part, counts, st.booleans())


PATTERNS: st.SearchStrategy[Node] = st.recursive(
    VARIABLES,
    lambda part: st.one_of(
        st.lists(part, min_size=2, max_size=3).map(lambda parts: Sequence(tuple(parts))),
        st.lists(part, min_size=2, max_size=3).map(lambda parts: Choice(tuple(parts))),
        _repeats(part),
    ),
    max_leaves=5,
)


def ends(node: Node) -> bool:
    """Return whether no part that may be empty repeats."""
    match node:
        case Repeat(part, _, most):
            return ends(part) and (most == 1 or not may_be_empty(part))
        case Sequence(parts) | Choice(parts):
            return all(map(ends, parts))
        case _:
            return True


ROWS = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 2)), st.integers(0, 2)), max_size=7)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, Matcher]:
    """Draw a case for the reference, and the matcher that is to find the same."""
    pattern = draw(PATTERNS.filter(lambda one: not may_be_empty(one) and ends(one)))
    rows = draw(ROWS)
    chosen = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 8), min_size=1))
    known = (*LOCAL, *REMEMBERING)
    case = Case(
        pattern=pattern,
        rows=rows,
        times=[sum(gap for _, gap in rows[: i + 1]) for i in range(len(rows))],
        holds={name: known[i][1] for name, i in chosen.items()},
        within=draw(st.one_of(st.none(), st.integers(0, 4))),
        skip=draw(st.sampled_from(Skip)),
        target=draw(st.sampled_from(NAMES)),
    )
    return case, Matcher(
        program=compiled(pattern),
        conditions={name: known[i][0] for name, i in chosen.items()},
        running=Running(SLOTS, NAMES),
        remembers=any(i >= len(LOCAL) for i in chosen.values()),
        skip=case.skip,
        target=case.target,
        within=case.within,
    )


@settings(max_examples=300, deadline=None)
@given(cases())
def test_it_finds_what_trying_every_way_finds(drawn: tuple[Case, Matcher]) -> None:
    case, matcher = drawn

    wanted = by_hand.matches(case)

    if isinstance(wanted, str):
        with pytest.raises(CdcError, match=f"after a match it skips to {case.target}, .* {wanted}"):
            list(matcher.matches(case.rows, case.times, Budget()))
    else:
        found = matcher.matches(case.rows, case.times, Budget())
        assert [(one.first, one.variables) for one in found] == wanted
