"""Keep Spark from answering otherwise than Postgres: its settings, and expressions that raise."""

from typing import Final

from sqlglot import exp

from cdc.events.values.sql_text import spark_string

REFUSED: Final = "Spark cannot calculate"
"""How the error of a guard begins."""
SETTINGS: Final[dict[str, str]] = {
    # A number or a cast that is out of range raises.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Names are quoted as in Postgres.
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    # A decimal that does not fit raises; by default it would lose digits after the point.
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "true",
}
"""What the session needs. It is part of the meaning of a query."""

DAYS: Final[dict[str, str]] = {
    "DOW": "(EXTRACT(DAYOFWEEK FROM {value}) - 1)",
    "ISODOW": "EXTRACT(DAYOFWEEK_ISO FROM {value})",
    "ISOYEAR": "EXTRACT(YEAROFWEEK FROM {value})",
}
"""What Spark counts from another day, or calls by another name."""


def is_zoneless(node: exp.Expr) -> bool:
    """Return whether the text shows a timestamp without zone."""
    if isinstance(node, exp.Paren | exp.TimestampTrunc):
        return is_zoneless(node.this)
    return isinstance(node, exp.Cast) and node.to.this == exp.DType.TIMESTAMP


def is_filter(node: exp.In) -> bool:
    """Return whether it makes no difference that a condition is false where it should be NULL.

    Of NOT IN that is so where Spark joins by it, which is right: as a part of WHERE.
    """
    above = node.parent
    passed: tuple[type[exp.Expr], ...] = (exp.And, exp.Or, exp.Paren)
    while isinstance(above, exp.Paren):
        above = above.parent
    if isinstance(above, exp.Not):
        above, passed = above.parent, (exp.And, exp.Paren)
    while isinstance(above, passed):
        above = above.parent
    return isinstance(above, exp.Where)


def series(last: int) -> str:
    """Return a table of the whole numbers from 0 to ``last``."""
    return f"(SELECT EXPLODE(SEQUENCE(0, {last})))"


def when(condition: str, text: str, what: str) -> str:
    """Return an expression that is ``text`` under the condition, else raises and says what."""
    return f"(CASE WHEN {condition} THEN {text} ELSE {error(what)} END)"


def error(what: str) -> str:
    """Return an expression that raises, and says what Spark cannot calculate."""
    return f"RAISE_ERROR({spark_string(f'{REFUSED} {what}')})"
