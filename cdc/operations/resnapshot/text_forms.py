"""Describes the texts that have an exact value in the lake, as regular expressions.

Postgres writes other texts for values that the lake cannot hold: a year outside 1 to 9999, an
infinity, NaN. Both ways of ``values.py`` and ``arrow_values.py`` refuse what is of another form.
"""

from typing import Final

_DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?"
DATE: Final = f"^{_DAY}$"
TIMESTAMP: Final = f"^{_DAY} {_CLOCK}$"
INSTANT: Final = f"^{_DAY} {_CLOCK}[+]00$"
"""Sessions that read rows print in UTC (cdc/source/server/printing.py)."""


def decimal_form(kind: str) -> str:
    """Return the form of a text for the lake type ``decimal(p,s)``: no digit behind the s-th."""
    scale = kind.removesuffix(")").rpartition(",")[2]
    return f"^-?[0-9]+([.][0-9]{{0,{scale}}})?$"
