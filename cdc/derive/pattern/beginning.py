"""Find out which rows cannot begin a match, so that the matcher need not look at them."""

from collections.abc import Callable, Iterator, Mapping

from cdc.derive.pattern.program import Done, Jump, Program, Split, Take
from cdc.derive.pattern.running import Row
from cdc.derive.pattern.terms import Computed, Here, Operation, Term


def beginning(program: Program, conditions: Mapping[str, Term]) -> Callable[[Row], bool]:
    """Return whether a row may begin a match, as far as its own columns tell."""
    needed = [_needed(conditions.get(name)) for name in _first(program)]
    if not all(needed):
        return lambda _: True
    if len(needed) == 1:
        (columns,) = needed
        return lambda row: all(row[column] for column in columns)
    return lambda row: any(all(row[column] for column in columns) for columns in needed)


def _first(program: Program) -> set[str]:
    """Return the variables that can take the first row."""
    found, todo = set[str](), [0]
    seen = set[int]()
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        match program[at]:
            case Take(variable):
                found.add(variable)
            case Split(first, second):
                todo += first, second
            case Jump(to):
                todo.append(to)
            case Done():
                pass
    return found


def _needed(term: Term | None) -> tuple[int, ...]:
    """Return columns that are true wherever the condition is."""
    return () if term is None else tuple(_true(term))


def _true(term: Term) -> Iterator[int]:
    match term:
        case Here(column, 0):
            yield column
        case Computed(Operation.AND, parts):
            for part in parts:
                yield from _true(part)
