"""docs/reference/types.md, from what the code does with each type."""

from collections import Counter
from typing import Final

from cdc.events.values.pg_types import FAMILIES, OTHER, TYPES, Fidelity, Kept

INTRODUCTION: Final = """\
# Types

Made from `cdc/events/values/pg_types.py` by `python -m cdc.cli.reference docs/reference`; a test
compares. `tests/kinds` sends random values of each through the real connector, by snapshot and by
stream, and compares the lake with Postgres's own text.

- **exact**: the lake has a type that means the same;
- **as text**: a string that says all of it, the one that Postgres itself writes (ISO dates, UTC)
  unless the remark says otherwise;
- **refused**: the connector loses or alters values of the type. The column is left out of the lake,
  `wal2lake check` names it with the reason, and the rest of the table is kept.
"""

LIMITS_HEAD: Final = """
## Limits

A value beyond a limit goes to quarantine with table, key, position and reason, the table is
`degraded`, and everything else goes on. `source.as_text` lifts some of these limits for the columns
it names, in tables that the lake does not have yet.

| value | without a choice | with `source.as_text` |
|---|---|---|
"""
SAME: Final = "the same"
LIMITS: Final = (
    ("`NaN` in `numeric(p, s)`", "quarantine", "`NaN`"),
    ("numeric of more than 38 digits, or without a precision", "text: every digit, `NaN`", SAME),
    ("`numeric(p, s)` with s below 0 or above p", "decimal with the digits it needs", "text"),
    ("date or timestamp `infinity`, `-infinity`", "quarantine", "`infinity`"),
    ("date or timestamp BC", "quarantine", "`0044-03-15 BC`"),
    ("date or timestamp after the year 9999", "quarantine", "`10000-01-01`"),
    (
        "timestamp after `294247-01-10 04:00:54.775806`",
        "quarantine",
        "quarantine; **`infinity`** of a whole second: the connector's numbers end there",
    ),
    ("date of 5 to 14 October 1582", "exact", "text"),
    ("time `24:00:00`", "text", SAME),
    ("float `-0`, `NaN`, infinite, subnormal", "exact", SAME),
    ("interval `infinity`", "**arrives as `00:00:00`**: `verify` names the row", SAME),
    (
        "interval of more than 2147483647 hours",
        "the connector tries again and again: `status` shows the lag, its log the reason",
        SAME,
    ),
    ("`NaN` and infinities in a domain over numeric without a limit", "quarantine", SAME),
    ("the words `NAN`, `POSITIVE_INFINITY` in a domain over text", "quarantine", SAME),
    ("text that is not UTF-8", "quarantine", SAME),
)

ARRAYS: Final = """
## Arrays

An array of one dimension becomes `array<...>` where the table says so; NULL elements and the empty
array stay what they are. Of other arrays:

- One of several dimensions in a column of these types goes to quarantine, and so does an array of
  nothing but NULLs of `int4`, `int8`, `bytea` or `date`: the connector sends both alike. A column
  that is declared with several dimensions is refused.
- One whose first index is not 1 (`[0:1]={a,b}`) keeps its elements and loses the index: nothing in
  the event says so, and `verify` names the row.
- A BC date in an array arrives as AD, and 5 to 14 October 1582 ten days later: `check` names each
  column of `date[]`, and `verify` the row.

## Domains

A column of a domain, or of a domain over a domain, is kept like the type it is over; one over
`numeric` as text. Refused are domains over arrays, over `bytea` and over `bit(1)`.

## What else `check` refuses

- A column whose type has a namesake, such as a table called `date` in its schema: the connector
  looks types up by name and takes one for the other. A table that is given a column whose type is
  called as one of Postgres's own, later, stops.
- `money` where `lc_monetary` is not that of C or en_US: the connector reads the printed amount.
- A type of your own with the name of a type in these tables.
"""


def types() -> str:
    parts = [INTRODUCTION, _counts()]
    for family, members in FAMILIES.items():
        rows = "".join(_row(name, found) for name, found in members.items())
        parts.append(
            f"\n## {family}\n\n"
            "| Postgres | lake | kept | arrays of it | remarks |\n|---|---|---|---|---|\n" + rows
        )
    limits = "".join(f"| {' | '.join(limit)} |\n" for limit in LIMITS)
    return "".join([*parts, LIMITS_HEAD, limits, ARRAYS])


def _counts() -> str:
    found = Counter(kept.fidelity for kept in TYPES.values())
    arrays = sum(kept.arrays for kept in TYPES.values())
    listed = ", ".join(f"{found[kind]} {kind.value}" for kind in Fidelity)
    return f"\nOf {len(TYPES)} types: {listed}. Arrays of {arrays} of them are kept.\n"


def _row(name: str, found: Kept) -> str:
    refused = found.fidelity is Fidelity.REFUSED
    spark = "" if refused else f"`{found.spark}`"
    return (
        f"| {_spelled(name)} | {spark} | {found.fidelity.value} | "
        f"{'' if refused else _arrays(found)} | {found.note} |\n"
    )


def _spelled(name: str) -> str:
    if name == OTHER:
        return "any other base type, of an extension"
    return name.strip("()") if name.startswith("(") else f"`{name}`"


def _arrays(found: Kept) -> str:
    if found.arrays:
        remark = f"; {found.of_arrays}" if found.of_arrays else ""
        return f"`array<{found.spark}>`{remark}"
    return f"refused: {found.of_arrays}"
