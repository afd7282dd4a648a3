"""Strings and names as SQL text, for each of the parsers that read some of ours.

Nothing else in the project puts quotes around a text. Every function takes any text without NUL,
which Postgres has none of either, and what it gives is one token that means exactly that text.
"""

import re
from typing import Final

_IN_SPARK: Final = re.compile(r"[\\'$\x00-\x1f\x7f-\x9f]")
_NOT_PLAIN: Final = re.compile(r"[^A-Za-z0-9_]")


def spark_string(text: str) -> str:
    """A string of Spark SQL.

    Spark puts the value of a setting, or of a variable of the environment, in the place of
    ``${..}`` before it parses, inside of strings too: here no dollar is left for it.
    """
    escaped = _IN_SPARK.sub(lambda found: f"\\u{ord(found[0]):04X}", text)
    return f"'{escaped}'"


def spark_name(name: str) -> str:
    """A name of Spark SQL.

    No escape stands for a dollar in it: a session that is to read it must not put values in the
    place of ``${..}`` (cdc/lake/session.py).
    """
    return _quoted(name, "`")


def spark_delta(path: str) -> str:
    """The Delta table at the path, as Spark SQL names it."""
    return f"delta.{spark_name(path)}"


def fusion_string(text: str) -> str:
    """A string of DataFusion, which delta-rs reads predicates and queries with."""
    return _quoted(text, "'")


def fusion_name(name: str) -> str:
    """A name of DataFusion."""
    return _quoted(name, '"')


def postgres_string(text: str) -> str:
    """A string of Postgres, the same whatever the setting of standard_conforming_strings."""
    plain = _quoted(text, "'")
    if "\\" not in text:
        return plain
    escaped = plain.replace("\\", "\\\\")
    return f"E{escaped}"


def postgres_name(name: str) -> str:
    """A name of Postgres, which is one of the SQL standard."""
    return _quoted(name, '"')


def postgres_name_in_codes(name: str) -> str:
    """A name of Postgres with nothing in it that a configuration could take for its own."""
    spelled = _NOT_PLAIN.sub(lambda found: f"\\+{ord(found[0]):06X}", name)
    return f'U&"{spelled}"'


def standard_string(text: str) -> str:
    """A string as the SQL standard has it: how an operator writes one."""
    return _quoted(text, "'")


def _quoted(text: str, quote: str) -> str:
    doubled = text.replace(quote, quote * 2)
    return f"{quote}{doubled}{quote}"
