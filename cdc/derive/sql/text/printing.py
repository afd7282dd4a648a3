"""Print functions of text, for Postgres and for DuckDB."""

from string import ascii_lowercase, ascii_uppercase
from typing import Final

from sqlglot import exp
from sqlglot.generators.postgres import PostgresGenerator

OWN: Final = frozenset(
    {
        exp.Lower,
        exp.MD5,
        exp.Pad,
        exp.SplitPart,
        exp.StartsWith,
        exp.StrPosition,
        exp.Translate,
        exp.Trim,
        exp.Upper,
    }
)
"""The nodes that are printed here although sqlglot may have a printer for them in a table."""
_ENDS: Final = {"LEADING": "LTRIM", "TRAILING": "RTRIM", "BOTH": "TRIM"}


class TextPrinter(PostgresGenerator):
    """Print what is spelled in the same way in Postgres and in another engine."""

    def trim_sql(self, expression: exp.Trim) -> str:
        return (
            f"TRIM({side(expression)} {self._removed(expression)} FROM {self._given(expression)})"
        )

    def pad_sql(self, expression: exp.Pad) -> str:
        name = "LPAD" if expression.args.get("is_left") else "RPAD"
        length, filling = self.sql(expression, "expression"), expression.args.get("fill_pattern")
        text = self.sql(filling) if filling is not None else "' '"
        return f"{name}({self._given(expression)}, {length}, {text})"

    def splitpart_sql(self, expression: exp.SplitPart) -> str:
        separator, number = self.sql(expression, "delimiter"), self.sql(expression, "part_index")
        return f"SPLIT_PART({self._given(expression)}, {separator}, {number})"

    def strposition_sql(self, expression: exp.StrPosition) -> str:
        return f"POSITION({self.sql(expression, 'substr')} IN {self._given(expression)})"

    def startswith_sql(self, expression: exp.StartsWith) -> str:
        return f"STARTS_WITH({self._given(expression)}, {self.sql(expression, 'expression')})"

    def translate_sql(self, expression: exp.Translate) -> str:
        old, new = self.sql(expression, "from_"), self.sql(expression, "to")
        return f"TRANSLATE({self._given(expression)}, {old}, {new})"

    def lower_sql(self, expression: exp.Lower) -> str:
        return f"LOWER({self._given(expression)})"

    def upper_sql(self, expression: exp.Upper) -> str:
        return f"UPPER({self._given(expression)})"

    def md5_sql(self, expression: exp.MD5) -> str:
        """Print MD5 of the text in UTF-8, whatever the encoding of the database is."""
        return f"MD5(CONVERT_TO({self._given(expression)}, 'UTF8'))"

    def _given(self, expression: exp.Expr) -> str:
        return self.sql(expression, "this")

    def _removed(self, expression: exp.Trim) -> str:
        removed = expression.args.get("expression")
        return self.sql(removed) if removed is not None else "' '"


class PlainTextPrinter(TextPrinter):
    """Print for an engine that has no collations, and whose text is UTF-8."""

    def lower_sql(self, expression: exp.Lower) -> str:
        return self._letters(expression, ascii_uppercase, ascii_lowercase)

    def upper_sql(self, expression: exp.Upper) -> str:
        return self._letters(expression, ascii_lowercase, ascii_uppercase)

    def md5_sql(self, expression: exp.MD5) -> str:
        return f"MD5({self._given(expression)})"

    def _letters(self, expression: exp.Expr, old: str, new: str) -> str:
        """Change the case of ASCII letters alone, as the collation of the definition does."""
        return f"TRANSLATE({self.sql(expression.this, 'this')}, '{old}', '{new}')"


class DuckTextPrinter(PlainTextPrinter):
    """Print for DuckDB."""

    def trim_sql(self, expression: exp.Trim) -> str:
        name = _ENDS[side(expression)]
        return f"{name}({self._given(expression)}, {self._removed(expression)})"


def side(expression: exp.Trim) -> str:
    """Return at which end characters are removed."""
    return str(expression.args.get("position") or "BOTH").upper()
