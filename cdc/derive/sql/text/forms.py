"""Check the forms of functions of text, in which they mean the same in every engine."""

import re
from typing import Final

from sqlglot import exp

from cdc.derive.sql import refused
from cdc.derive.sql.problem import Check, Complaint

COLLATION: Final = "C"
"""The collation in which only letters of ASCII have another case."""
_WHOLE: Final = re.compile(r"\d+")


def whole_number(node: exp.Expr | None, least: int) -> bool:
    """Return whether a node is a constant whole number that is not below ``least``."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return False
    return bool(_WHOLE.fullmatch(str(node.this))) and int(node.this) >= least


def _is_text(node: exp.Expr | None, shortest: int = 0) -> bool:
    """Return whether a node is a constant text, of at least so many characters."""
    return isinstance(node, exp.Literal) and node.is_string and len(node.this) >= shortest


def _like(node: exp.Expr) -> Complaint | None:
    pattern = node.expression
    if _is_text(pattern) and "\\" not in pattern.this:
        return None
    return "LIKE needs a constant pattern without backslash", "write LIKE 'text%'"


def _substring(node: exp.Expr) -> Complaint | None:
    start, length = node.args.get("start"), node.args.get("length")
    if whole_number(start, 1) and (length is None or whole_number(length, 0)):
        return None
    return "substring needs constants", "write substring(a, 2, 3): from 1, and a length from 0"


def _end(node: exp.Expr) -> Complaint | None:
    count = node.expression
    if whole_number(count.this if isinstance(count, exp.Neg) else count, 0):
        return None
    return f"{node.key} needs a constant number", f"write {node.key}(a, 2)"


def _split(node: exp.Expr) -> Complaint | None:
    if _is_text(node.args.get("delimiter"), 1) and whole_number(node.args.get("part_index"), 1):
        return None
    return "split_part needs constants", "write split_part(a, '/', 1): a separator, and from 1"


def _case(node: exp.Expr) -> Complaint | None:
    if isinstance(node.this, exp.Collate):
        return None
    return f"{node.key}() is refused without a collation", refused.LETTERS.format(node.key)


def _collate(node: exp.Expr) -> Complaint | None:
    if not isinstance(node.parent, exp.Lower | exp.Upper):
        return "COLLATE is refused here", refused.WORDS["collate"]
    name = node.expression
    if isinstance(name, exp.Identifier) and name.args.get("quoted") and name.this == COLLATION:
        return None
    return "this collation is refused", refused.LETTERS.format(node.parent.key)


def _trim(node: exp.Expr) -> Complaint | None:
    removed = node.args.get("expression")
    if removed is None or _is_text(removed, 1):
        return None
    return "trim needs constant characters", "write trim(BOTH '/' FROM a)"


def _pad(node: exp.Expr) -> Complaint | None:
    filling = node.args.get("fill_pattern")
    if whole_number(node.expression, 0) and (filling is None or _is_text(filling, 1)):
        return None
    return "lpad and rpad need constants", "write lpad(a, 5, '0'): a length from 0, and a text"


def _translate(node: exp.Expr) -> Complaint | None:
    if _is_text(node.args.get("from_")) and _is_text(node.args.get("to")):
        return None
    return "translate needs constants", "write translate(a, 'xy', 'z')"


CHECKS: Final[dict[type[exp.Expr], Check]] = {
    exp.Like: _like,
    exp.Substring: _substring,
    exp.Left: _end,
    exp.Right: _end,
    exp.SplitPart: _split,
    exp.Lower: _case,
    exp.Upper: _case,
    exp.Collate: _collate,
    exp.Trim: _trim,
    exp.Pad: _pad,
    exp.Translate: _translate,
}
