"""Name expressions over text for the functions of text, each also over ``dialect.s``.

What tells engines apart there: letters of several characters, letters whose other case is of ASCII
or of another length, separators at the ends, and what is empty or NULL.
"""

from typing import Final

TEXTS: Final = (
    *(None, "", " ", "/", "//", "a/b/c", "/a//b/", "xx/ax", "  two  words ", "\t x\n"),
    *("\u00a0x\u2003", "ABC abc", "ÀÉé/ß", "\u0130stanbul \u0131Ii", "\u212aelvin", "\u017fs"),
    *("\ufb00", "\u01c5", "\u03a3\u03c3\u03c2"),
    *("e\u0301/E\u0301", "\U0001f469\u200d\U0001f467/x", "日本/語", "a_b%c\\d", "'it''s'"),
)  # fmt: skip
PARTS: Final = (None, "", "/", "a", "É", "\u0301", "x", "日", "//", "i")
PAIRS: Final = [
    (number, text, part)
    for number, (text, part) in enumerate((one, other) for one in TEXTS for other in PARTS)
]
"""The rows of ``dialect.s``: every text with every part."""


def _each(*expressions: str) -> tuple[str, ...]:
    """Return the expressions, and a query that evaluates all of them over ``dialect.s``."""
    listed = ", ".join(f"{one} AS x{number}" for number, one in enumerate(expressions))
    return (*expressions, f"SELECT id, {listed} FROM dialect.s")


def _of(form: str, *values: object) -> tuple[str, ...]:
    return _each(*(form.format(value) for value in values))


_COUNTS: Final = (0, 1, 2, 7, -1, -2, -7)
_SIZES: Final = (0, 1, 3, 9)
_SETS: Final = ("'x '", "'é日'", "'/'", "'\u0301'")
CASES: Final[dict[str, tuple[str, ...]]] = {
    "length": _each("length(t)", "length(u || t)", "char_length(t)", "character_length(t)"),
    "substring": _each(
        "substring(t, 1, 1)", "substring(t, 2)", "substring(t FROM 2 FOR 3)", "substring(t, 3, 0)",
        "substring(t, 99, 2)", "substr(t, 2, 2)",
    ),
    "left": _of("left(t, {})", *_COUNTS),
    "right": _of("right(t, {})", *_COUNTS),
    "strpos": _each("strpos(t, u)", "position(u IN t)", "strpos(t, '')", "position('日' IN t)"),
    "starts_with": _each("starts_with(t, u)", "starts_with(t, '')", "NOT starts_with(t, 'é')"),
    "split_part": (
        *_of("split_part(t, '/', {})", 1, 2, 3, 4, 99),
        *_each("split_part(t, '//', 2)", "split_part(t, 'é', 1)", "split_part(t, '\u0301', 2)"),
        *_each("split_part(split_part(t, '/', 2), 'b', 1)", "split_part(u || t, '.', 1)"),
        *_each("split_part(t, '|', 1)", "split_part(t, '''', 2)", "split_part(t, '\\', 2)"),
    ),
    "lower": _each('lower(t COLLATE "C")', "lower((t || u) COLLATE \"C\") = 'ab'"),
    "upper": _each('upper(t COLLATE "C")', 'length(upper(t COLLATE "C"))'),
    "trim": (
        *_each("trim(t)", "trim(u)", "trim(BOTH FROM t)", "btrim(t)"),
        *_of("trim({} FROM t)", *_SETS),
        *_of("btrim(t, {})", *_SETS),
    ),
    "ltrim": (
        *_each("ltrim(t)", "trim(LEADING FROM t)"),
        *_of("trim(LEADING {} FROM t)", *_SETS),
        *_of("ltrim(t, {})", *_SETS),
    ),
    "rtrim": (
        *_each("rtrim(t)", "trim(TRAILING FROM t)"),
        *_of("trim(TRAILING {} FROM t)", *_SETS),
        *_of("rtrim(t, {})", *_SETS),
    ),
    "lpad": (*_of("lpad(t, {})", *_SIZES), *_of("lpad(t, 5, {})", *_SETS, "'ab'")),
    "rpad": (*_of("rpad(t, {})", *_SIZES), *_of("rpad(t, 5, {})", *_SETS, "'ab'")),
    "replace": _each(
        "replace(t, 'a', 'bb')", "replace(t, '', 'x')", "replace(t, u, '')", "replace(t, 'A', u)"
    ),
    "translate": _each(
        "translate(t, 'abc', 'xy')", "translate(t, 'aab', 'xyz')", "translate(t, 'é日/', 'e本-')",
        "translate(t, '', 'x')", "translate(t, 'a', 'xyz')", "translate(t, 'ab', 'ba')",
        "translate(t, '\u0301 ', '')",
    ),
    "md5": _each("md5(t)", "md5(t || '-' || u)"),
}  # fmt: skip
