"""Quote strings and names as SQL text for each of the SQL parsers we use.

No other module quotes text. Every function accepts any text without NUL, which Postgres does not
allow either, and returns one token that means exactly that text.
"""

import re
from typing import Final

_IN_SPARK: Final = re.compile(r"[\\'$\x00-\x1f\x7f-\x9f]")
_NOT_PLAIN: Final = re.compile(r"[^A-Za-z0-9_]")


def spark_string(text: str) -> str:
    """Return a string literal of Spark SQL.

    Before parsing, Spark substitutes settings and environment variables for ``${..}``, even inside
    strings, so the result contains no dollar sign.
    """
    escaped = _IN_SPARK.sub(lambda match: f"\\u{ord(match[0]):04X}", text)
    return f"'{escaped}'"


def spark_name(name: str) -> str:
    """Return a quoted name of Spark SQL.

    A dollar sign in a name cannot be escaped, so the session that parses it must have the
    substitution of ``${..}`` switched off (cdc/lake/session.py).
    """
    return _quoted(name, "`")


def spark_delta(path: str) -> str:
    """Return Spark SQL's name for the Delta table at the path."""
    return f"delta.{spark_name(path)}"


def fusion_string(text: str) -> str:
    """Return a string literal of DataFusion, which parses delta-rs's predicates and queries."""
    return _quoted(text, "'")


def fusion_name(name: str) -> str:
    """Return a quoted name of DataFusion."""
    return _quoted(name, '"')


def postgres_string(text: str) -> str:
    """Return a string literal of Postgres, valid for either standard_conforming_strings."""
    plain = _quoted(text, "'")
    if "\\" not in text:
        return plain
    escaped = plain.replace("\\", "\\\\")
    return f"E{escaped}"


def postgres_name(name: str) -> str:
    """Return a quoted name of Postgres, which is also one of standard SQL."""
    return _quoted(name, '"')


def postgres_name_in_codes(name: str) -> str:
    """Return a Postgres name with special characters as codes, safe inside a configuration."""
    spelled = _NOT_PLAIN.sub(lambda match: f"\\+{ord(match[0]):06X}", name)
    return f'U&"{spelled}"'


def standard_string(text: str) -> str:
    """Return a string literal of standard SQL, as an operator would write it."""
    return _quoted(text, "'")


def _quoted(text: str, quote: str) -> str:
    doubled = text.replace(quote, quote * 2)
    return f"{quote}{doubled}{quote}"
