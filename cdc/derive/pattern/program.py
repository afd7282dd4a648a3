"""Compile a pattern into the instructions of a machine that tries alternatives in their order."""

from dataclasses import dataclass
from typing import Final

from cdc.derive.pattern.nodes import Choice, Node, Repeat, Sequence, Variable

MOST_INSTRUCTIONS: Final = 500
"""Of one pattern; ``{n}`` repeats the instructions of its part n times."""


@dataclass(frozen=True, slots=True)
class Take:
    """Give the next row to the variable, and go to the next instruction."""

    variable: str


@dataclass(frozen=True, slots=True)
class Split:
    """Go to ``first`` and, if that leads to no match, to ``second``."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Jump:
    """Go to another instruction."""

    to: int


@dataclass(frozen=True, slots=True)
class Done:
    """The rows so far are the match."""


Instruction = Take | Split | Jump | Done
Program = tuple[Instruction, ...]


class TooLargeError(Exception):
    """The pattern needs more than MOST_INSTRUCTIONS."""


def compiled(pattern: Node) -> Program:
    """Return the instructions of a pattern; raises TooLargeError.

    A part that repeats must not match empty: the machine would go around for ever.
    """
    writer = _Writer()
    writer.write(pattern)
    writer.add(Done())
    return tuple(writer.instructions)


class _Writer:
    def __init__(self) -> None:
        self.instructions: list[Instruction] = []

    def add(self, instruction: Instruction) -> int:
        if len(self.instructions) >= MOST_INSTRUCTIONS:
            raise TooLargeError
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    def write(self, node: Node) -> None:
        match node:
            case Variable(name):
                self.add(Take(name))
            case Sequence(parts):
                for part in parts:
                    self.write(part)
            case Choice(options):
                self._choice(options)
            case Repeat(part, least, most, greedy):
                for _ in range(least):
                    self.write(part)
                if most is None:
                    self._loop(part, greedy=greedy)
                else:
                    self._optional(part, most - least, greedy=greedy)

    def _choice(self, options: tuple[Node, ...]) -> None:
        ends = []
        for option in options[:-1]:
            split = self.add(Split(0, 0))
            self.write(option)
            ends.append(self.add(Jump(0)))
            self.instructions[split] = Split(split + 1, self._here)
        self.write(options[-1])
        for end in ends:
            self.instructions[end] = Jump(self._here)

    def _loop(self, part: Node, *, greedy: bool) -> None:
        split = self.add(Split(0, 0))
        self.write(part)
        self.add(Jump(split))
        self.instructions[split] = _either(split + 1, self._here, greedy=greedy)

    def _optional(self, part: Node, times: int, *, greedy: bool) -> None:
        splits = []
        for _ in range(times):
            splits.append(self.add(Split(0, 0)))
            self.write(part)
        for split in splits:
            self.instructions[split] = _either(split + 1, self._here, greedy=greedy)

    @property
    def _here(self) -> int:
        return len(self.instructions)


def _either(more: int, enough: int, *, greedy: bool) -> Split:
    return Split(more, enough) if greedy else Split(enough, more)
