"""Bugs of patterns: preference, quantifiers, windows, what a condition sees, ties, measures."""

from typing import Final

from tests.mutants.mutant import Mutant

_PURE: Final = tuple(
    f"tests/unit/derive/pattern/test_{name}.py"
    for name in ("matcher", "matcher_by_hand", "running", "beginning")
)
_CALCULATED: Final = tuple(
    f"tests/unit/derive/pattern/test_{name}.py" for name in ("conditions", "measures")
)
_KEPT: Final = ("tests/unit/derive/keep/test_patterns.py",)
_READ: Final = ("tests/unit/derive/definition/test_pattern_definition.py",)


def _of(name: str, file: str, old: str, new: str, tests: tuple[str, ...]) -> Mutant:
    path = f"cdc/derive/{file}.py"
    return Mutant(name=f"patterns: {name}", file=path, old=old, new=new, tests=tests)


DERIVED_PATTERNS: Final = (
    _of(
        "fewer rows are preferred where more are asked for",
        "pattern/program",
        "Split(more, enough) if greedy",
        "Split(more, enough) if not greedy",
        _PURE,
    ),
    _of(
        "a repetition may be left out",
        "pattern/program",
        "range(least)",
        "range(max(least - 1, 0))",
        _PURE,
    ),
    _of(
        "a later alternative is preferred",
        "pattern/matcher",
        "(second, at, state, path), (first, at, state, path)",
        "(first, at, state, path), (second, at, state, path)",
        _PURE,
    ),
    _of(
        "the next match begins in the last row of this one",
        "pattern/matcher",
        "                return len(variables)\n",
        "                return max(len(variables) - 1, 1)\n",
        _PURE,
    ),
    _of(
        "it skips to the last row of a variable",
        "pattern/matcher",
        "named[0] if self.skip",
        "named[-1] if self.skip",
        _PURE,
    ),
    _of(
        "a match lasts less than within",
        "pattern/matcher",
        "times[at] + self.within, at)",
        "times[at] + self.within - 1, at)",
        _PURE,
    ),
    _of(
        "what led to nothing in one window is not tried in the next",
        "pattern/matcher",
        "if self._of.within is not None or self._round == 0:",
        "if self._round == 0:",
        _PURE,
    ),
    _of(
        "what a match tried is not tried again",
        "pattern/matcher",
        "        if found is not None:\n            self._round += 1\n",
        "",
        _PURE,
    ),
    _of(
        "what was tried is forgotten",
        "pattern/matcher",
        "            return True\n        self._tried",
        "            return False\n        self._tried",
        _PURE,
    ),
    _of(
        "the first row of a variable is its last",
        "pattern/running",
        "return at if before is None else before",
        "return at",
        _PURE,
    ),
    _of(
        "NULL is counted",
        "pattern/running",
        "return before if value is None else add(before or 0, 1)",
        "return add(before or 0, 1)",
        _PURE,
    ),
    _of(
        "any condition of a row keeps it from beginning a match",
        "pattern/beginning",
        "case Computed(Operation.AND, parts)",
        "case Computed(_, parts)",
        _PURE,
    ),
    _of(
        "NULL in a list is no value",
        "pattern/evaluation",
        "return None if None in others else False",
        "return False",
        _CALCULATED,
    ),
    _of(
        "an unknown part of AND is true",
        "pattern/evaluation",
        "                found = None\n",
        "                pass\n",
        _CALCULATED,
    ),
    _of(
        "a missing row is the row itself",
        "pattern/evaluation",
        "if at >= back else None",
        "if at >= back else rows[at][column]",
        _CALCULATED,
    ),
    _of(
        "a function is taken of a row that is not there",
        "pattern/conditions",
        "    exp.Extract,\n)",
        "    exp.Extract,\n    exp.Coalesce,\n)",
        _CALCULATED,
    ),
    _of(
        "a measure is of all rows",
        "pattern/measures",
        "    if variable is None:\n",
        "    if True:\n",
        _CALCULATED,
    ),
    _of(
        "rows of equal time are in the order of the files",
        "engine/matches",
        "[*pattern.order, *ties]",
        "pattern.order",
        _KEPT,
    ),
    _of(
        "a row without time is the last one",
        "engine/matches",
        'f"WHERE {first} IS NOT NULL ORDER BY {ROW}"',
        'f"ORDER BY {ROW}"',
        _KEPT,
    ),
    _of(
        "a partition may be one row larger",
        "engine/matches",
        "int(str(most)) > pattern.bounds.most_rows:",
        "int(str(most)) > pattern.bounds.most_rows + 1:",
        _KEPT,
    ),
    _of(
        "a longer window is the same definition",
        "pattern/pattern",
        "bounds.within, bounds.most_rows, ",
        "bounds.most_rows, ",
        _READ,
    ),
)
