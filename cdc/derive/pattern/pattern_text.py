"""Parse the text between the parentheses of PATTERN.

What repeats has to match a row each time: engines differ on rounds of a repetition that match none.
So has the whole pattern, because a match of no row has nothing to show.
"""

import re
from typing import Final

from cdc.derive.pattern.nodes import Choice, Node, Repeat, Sequence, Variable, may_be_empty

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<count>\{\s*(?P<least>[0-9]{0,4})\s*(?P<comma>,?)\s*(?P<most>[0-9]{0,4})\s*\})"
    r"|(?P<sign>[()|*+?]))"
)
_SIGNS: Final[dict[str, tuple[int, int | None]]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
DEEPEST: Final = 50
"""How many parentheses may be within each other."""
FORMS: Final = "use variables, parentheses, |, *, +, ?, {n}, {n,}, {n,m}, each with ? for fewest"


class PatternError(Exception):
    """Reports that a pattern is refused: where in its text, what and the remedy."""

    def __init__(self, at: int, what: str, remedy: str = FORMS) -> None:
        super().__init__(what)
        self.at, self.what, self.remedy = at, what, remedy


def parse(text: str) -> Node:
    """Return the pattern; its names are in lower case, as Postgres folds them.

    Raises PatternError.
    """
    node = _Parser(text).whole()
    if may_be_empty(node):
        raise PatternError(0, "the pattern can match no row at all", "write A+ instead of A*")
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0

    def whole(self) -> Node:
        node = self._choice()
        if self._rest():
            raise self._unexpected()
        return node

    def _choice(self) -> Node:
        options = [self._sequence()]
        while self._takes("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Node:
        parts = []
        while (part := self._part()) is not None:
            parts.append(self._repeated(*part))
        if not parts:
            raise self._unexpected()
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _part(self) -> tuple[int, Node] | None:
        """Return a variable or a group and where it begins; None if another thing comes."""
        found = _TOKEN.match(self._text, self._at)
        if found is not None and found["name"]:
            if found["name"].lower() == "permute":  # alone it would take any row, by its name
                remedy = "write the orders as alternatives: (A B | B A)"
                raise PatternError(found.start("name"), "PERMUTE is refused", remedy)
            self._at = found.end()
            return found.start("name"), Variable(found["name"].lower())
        begin = self._at
        return (begin, self._group()) if self._takes("(") else None

    def _group(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise PatternError(self._at, f"more than {DEEPEST} groups are within each other")
        node = self._choice()
        if not self._takes(")"):
            raise self._unexpected()
        self._depth -= 1
        return node

    def _repeated(self, begin: int, node: Node) -> Node:
        found = _TOKEN.match(self._text, self._at)
        if found is None or not (found["count"] or found["sign"] in _SIGNS):
            return node
        least, most = _SIGNS[found["sign"]] if found["sign"] else _counted(found)
        self._at = found.end()
        greedy = not self._takes("?")
        if most != 1 and may_be_empty(node):
            what = "a part that repeats can match no row"
            raise PatternError(begin, what, "let the part have a row each time: write (A)* for A?")
        following = _TOKEN.match(self._text, self._at)
        if following is not None and (following["count"] or following["sign"] in _SIGNS):
            raise PatternError(self._at, "two quantifiers follow each other", "use parentheses")
        return Repeat(node, least, most, greedy)

    def _takes(self, sign: str) -> bool:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found["sign"] != sign:
            return False
        self._at = found.end()
        return True

    def _rest(self) -> str:
        return self._text[self._at :].strip()

    def _unexpected(self) -> PatternError:
        rest = self._rest()
        at = self._at + len(self._text[self._at :]) - len(self._text[self._at :].lstrip())
        if not rest:
            return PatternError(at, "the pattern ends too early")
        return PatternError(at, f"{rest[:1]} is refused here in the pattern")


def _counted(found: "re.Match[str]") -> tuple[int, int | None]:
    least = int(found["least"] or 0)
    if not found["comma"]:
        most: int | None = least
    else:
        most = int(found["most"]) if found["most"] else None
    if not (found["least"] or found["most"]) or most == 0 or (most is not None and most < least):
        text = found["count"]
        raise PatternError(found.start("count"), f"{text} is refused", "write {2}, {2,} or {2,5}")
    return least, most
