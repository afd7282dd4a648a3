"""Find the place of a node in a definition's text, and report problems there."""

from collections.abc import Iterator

from sqlglot import exp

from cdc.derive.sql.problem import Place, Problem


class Reporter:
    """Make problems with the places of one file."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._text = text

    def at(self, start: int, message: str, remedy: str) -> Problem:
        """Return a problem at an offset of the text."""
        line, column = self.place(start)
        return Problem(self.file, line, column, message, remedy)

    def on(self, node: exp.Expr, message: str, remedy: str) -> Problem:
        """Return a problem at a node."""
        return self.at(start_of(node), message, remedy)

    def follows(self, node: exp.Expr, word: str) -> bool:
        """Return whether the word is directly before a node."""
        return self._text[: start_of(node)].rstrip().lower().endswith(word)

    def place(self, start: int) -> Place:
        """Return the line and column of an offset."""
        before = self._text[:start]
        return before.count("\n") + 1, start - before.rfind("\n")


def start_of(node: exp.Expr) -> int:
    """Return the offset of the node, or of the nearest node that has one.

    sqlglot keeps offsets of names and a few others: the first one below a node is near its start.
    """
    above: exp.Expr | None = node
    while above is not None:
        start = min(_starts(above), default=None)
        if start is not None:
            return start
        above = above.parent
    return 0


def _starts(node: exp.Expr) -> Iterator[int]:
    for part in node.walk():
        start = part.meta.get("start")
        if isinstance(start, int):
            yield start
