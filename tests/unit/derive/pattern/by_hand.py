"""Matches of a pattern by the text of the standard: try every way in the order of preference.

It shares no code with the matcher: all sequences of variables are written down, the preferred ones
first, and each is tested as a whole, every row with its own condition.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdc.derive.pattern.matcher import Skip
from cdc.derive.pattern.nodes import Choice, Node, Repeat, Variable
from cdc.derive.pattern.nodes import Sequence as Parts

Rows = Sequence[tuple[Any, ...]]
Taken = Sequence[tuple[str, int]]
"""The rows of a match so far: the variable and the position of each, the current one last."""
Holds = Callable[[Rows, Taken], bool]


def words(node: Node, most: int) -> Iterator[tuple[str, ...]]:
    """Yield the sequences of up to ``most`` variables that a pattern has, the preferred first."""
    match node:
        case Variable(name):
            yield from [(name,)] if most else []
        case Choice(options):
            for option in options:
                yield from words(option, most)
        case Parts(parts):
            yield from _joined(parts, most)
        case Repeat():
            yield from _repeated(node, most)


def _joined(parts: tuple[Node, ...], most: int) -> Iterator[tuple[str, ...]]:
    if not parts:
        yield ()
        return
    for begin in words(parts[0], most):
        for end in _joined(parts[1:], most - len(begin)):
            yield begin + end


def _repeated(node: Repeat, most: int) -> Iterator[tuple[str, ...]]:
    enough = node.least == 0
    if enough and not node.greedy:
        yield ()
    if node.most is None or node.most > 0:
        fewer = None if node.most is None else node.most - 1
        rest = Repeat(node.part, max(node.least - 1, 0), fewer, node.greedy)
        for begin in words(node.part, most):
            for end in words(rest, most - len(begin)):
                yield begin + end
    if enough and node.greedy:
        yield ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is matched, and how."""

    pattern: Node
    rows: Rows
    times: Sequence[int]
    holds: Mapping[str, Holds]  # by variable; one without takes every row
    within: int | None
    skip: Skip
    target: str


def matches(case: Case) -> list[tuple[int, tuple[str, ...]]] | str:
    """Return the matches, each with its first position; a word for a skip that cannot be made."""
    found = []
    at = 0
    while at < len(case.rows):
        longest = len(case.rows) - at
        word = next((w for w in words(case.pattern, longest) if _fits(case, w, at)), None)
        if word is None:
            at += 1
            continue
        found.append((at, word))
        onward = _onward(case, word)
        if isinstance(onward, str):
            return onward
        at += onward
    return found


def _onward(case: Case, word: tuple[str, ...]) -> int | str:
    if case.skip is Skip.PAST_LAST_ROW:
        return len(word)
    if case.skip is Skip.TO_NEXT_ROW:
        return 1
    places = [i for i, name in enumerate(word) if name == case.target]
    if not places:
        return "no row"
    return (min(places) if case.skip is Skip.TO_FIRST else max(places)) or "first row"


def _fits(case: Case, word: tuple[str, ...], at: int) -> bool:
    taken = [(name, at + i) for i, name in enumerate(word)]
    if case.within is not None:
        lasts = case.times[at + len(word) - 1] - case.times[at]
        if lasts > case.within:
            return False
    return all(
        name not in case.holds or case.holds[name](case.rows, taken[: i + 1])
        for i, (name, _) in enumerate(taken)
    )
