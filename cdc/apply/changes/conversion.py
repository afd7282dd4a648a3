"""Define a conversion from the connector's form to the lake's: a Spark text and its Python.

Every conversion has both, side by side, and both mean the same: who changes one changes the other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

END: Final = r"(?![\s\S])"
"""The end of a text in a pattern, for Spark and Python alike. A ``$`` also matches before a line's
end at the end of the text, and the two count different characters as that."""
Of = Callable[[Any], Any]
"""The Python of a conversion: from a value that is not None; None where it has no exact form.

Dates are days and timestamps microseconds since 1970, as Arrow takes them.
"""


def same(value: Any) -> Any:  # noqa: ANN401 - any value
    """Return the value: the Python of a conversion that converts nothing."""
    return value


def no_form(_value: Any) -> None:  # noqa: ANN401 - any value
    """Return None: the Python of a conversion that keeps no value."""
    return


@dataclass(frozen=True, slots=True)
class Scalar:
    """Holds one value's SQL text, and its Python; a fallible one is null without an exact form."""

    sql: str
    spark: str  # type of ``sql``
    of: Of
    fallible: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """Converts one type: ``sql`` makes the text over a field, ``of`` converts one value."""

    sql: Callable[[str], str]
    of: Of
    spark: str = "string"
    fallible: bool = False

    def over(self, raw: str) -> Scalar:
        """Return the conversion of the field ``raw``."""
        return Scalar(self.sql(raw), self.spark, self.of, self.fallible)


def then(first: Of, second: Of) -> Of:
    """Return the Python of both, one after the other; None where either gives None."""
    if first is same:
        return second
    if second is same:
        return first

    def both(value: Any) -> Any:  # noqa: ANN401 - any value
        made = first(value)
        return None if made is None else second(made)

    return both
