"""Define what the clause PATTERN says, as a tree, and what can be said of it without rows."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """Takes one row that fulfils the condition of the variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Takes one part after the other."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Takes one of the options; an earlier one is preferred."""

    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Takes a part ``least`` to ``most`` times; None is any number.

    A greedy one prefers more, any other fewer.
    """

    part: "Node"
    least: int
    most: int | None
    greedy: bool = True


Node = Variable | Sequence | Choice | Repeat


def variables(node: Node) -> Iterator[str]:
    """Yield the names of the variables, each as often as it is written."""
    match node:
        case Variable(name):
            yield name
        case Sequence(parts) | Choice(parts):
            for part in parts:
                yield from variables(part)
        case Repeat(part):
            yield from variables(part)


def may_be_empty(node: Node) -> bool:
    """Return whether the node can match no row at all."""
    match node:
        case Variable():
            return False
        case Sequence(parts):
            return all(map(may_be_empty, parts))
        case Choice(options):
            return any(map(may_be_empty, options))
        case Repeat(part, least, most):
            return least == 0 or most == 0 or may_be_empty(part)
