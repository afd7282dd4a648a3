"""Generate docs/reference/types.md from what the code does with each type."""

from collections import Counter
from typing import Final

from cdc.events.values.pg_types import FAMILIES, OTHER, TYPES, Fidelity, TypeRule

INTRODUCTION: Final = """\
# Types

Generated from `cdc/events/values/pg_types.py` by `python -m cdc.cli.reference docs/reference`; a
test compares. `tests/kinds` sends random values of each type through the real connector, by
snapshot and by stream, and compares the lake with Postgres's own text.

- **exact**: the lake has an equivalent type;
- **as text**: the lake has a string that loses nothing: what Postgres prints (ISO dates, UTC),
  unless the remark says otherwise;
- **refused**: the connector loses or alters values of the type. The column is left out of the lake,
  `wal2lake check` reports it with the reason, and the rest of the table is kept.
"""

LIMITS_HEAD: Final = """
## Limits

A value beyond a limit goes to quarantine with its table, key, position and reason; the table
becomes `degraded`, and everything else continues. `source.as_text` lifts some of these limits for
the columns that it names, in tables that are not in the lake yet.

| value | by default | with `source.as_text` |
|---|---|---|
"""
SAME: Final = "the same"
LIMITS: Final = (
    ("`NaN` in `numeric(p, s)`", "quarantine", "`NaN`"),
    ("`numeric` with more than 38 digits or no precision", "text: every digit, `NaN`", SAME),
    ("`numeric(p, s)` with s below 0 or above p", "decimal with the digits it needs", "text"),
    ("date or timestamp `infinity`, `-infinity`", "quarantine", "`infinity`"),
    ("date or timestamp BC", "quarantine", "`0044-03-15 BC`"),
    ("date or timestamp after the year 9999", "quarantine", "`10000-01-01`"),
    (
        "timestamp after `294247-01-10 04:00:54.775806`",
        "quarantine",
        "quarantine; **a whole second arrives as `infinity`**: the connector's numbers end there",
    ),
    ("date from 5 to 14 October 1582", "exact", "text"),
    ("time `24:00:00`", "text", SAME),
    ("float `-0`, `NaN`, infinite, subnormal", "exact", SAME),
    ("interval `infinity`", "**arrives as `00:00:00`**: `verify` reports the row", SAME),
    (
        "interval of more than 2147483647 hours",
        "the connector retries forever: `status` shows the lag, the worker's log the reason",
        SAME,
    ),
    ("`NaN` and infinities in a domain over unconstrained numeric", "quarantine", SAME),
    (
        "the words `NAN`, `POSITIVE_INFINITY`, `NEGATIVE_INFINITY` in a domain over text",
        "quarantine",
        SAME,
    ),
    ("text that is not UTF-8", "quarantine", SAME),
)

ARRAYS: Final = """
## Arrays

A one-dimensional array becomes `array<...>` for the types marked so in the tables above; NULL
elements and empty arrays are kept. Other arrays:

- A multidimensional array in such a column goes to quarantine, and so does an array of `int4`,
  `int8`, `bytea` or `date` that holds nothing but NULLs, because the connector sends both alike. A
  column that is declared with several dimensions is refused.
- An array whose first index is not 1 (`[0:1]={a,b}`) keeps its elements and loses the index. The
  event does not show it; `verify` reports the row.
- In an array, a BC date arrives as AD, and 5 to 14 October 1582 arrives ten days later: `check`
  warns of each `date[]` column, and `verify` reports the row.

## Domains

A column of a domain, or of a domain over a domain, is kept like its base type; over `numeric`, as
text. Domains over arrays, over `bytea` and over `bit(1)` are refused.

## What else `check` refuses

- A column whose type has a namesake, such as a table called `date` in its schema: the connector
  looks types up by name and confuses the two. A table stops if it is later given a column of a type
  that is named like one of Postgres's own.
- `money`, unless `lc_monetary` is C or en_US: the connector parses the printed amount.
- A type of your own with the name of a type in these tables.
"""


def types() -> str:
    """Return the page: a table for each family of types, the limits, arrays and domains."""
    parts = [INTRODUCTION, _counts()]
    for family, members in FAMILIES.items():
        rows = "".join(_row(name, kept) for name, kept in members.items())
        parts.append(
            f"\n## {family}\n\n"
            "| Postgres | lake | kept | arrays | remarks |\n|---|---|---|---|---|\n" + rows
        )
    limits = "".join(f"| {' | '.join(limit)} |\n" for limit in LIMITS)
    return "".join([*parts, LIMITS_HEAD, limits, ARRAYS])


def _counts() -> str:
    count = Counter(kept.fidelity for kept in TYPES.values())
    arrays = sum(kept.arrays for kept in TYPES.values())
    listed = ", ".join(f"{count[fidelity]} {fidelity.value}" for fidelity in Fidelity)
    return f"\nOf {len(TYPES)} types: {listed}. Arrays of {arrays} of them are kept.\n"


def _row(name: str, kept: TypeRule) -> str:
    refused = kept.fidelity is Fidelity.REFUSED
    spark = "" if refused else f"`{kept.spark}`"
    return (
        f"| {_spelled(name)} | {spark} | {kept.fidelity.value} | "
        f"{'' if refused else _arrays(kept)} | {kept.note} |\n"
    )


def _spelled(name: str) -> str:
    if name == OTHER:
        return "any other base type, of an extension"
    return name.strip("()") if name.startswith("(") else f"`{name}`"


def _arrays(kept: TypeRule) -> str:
    if kept.arrays:
        remark = f"; {kept.of_arrays}" if kept.of_arrays else ""
        return f"`array<{kept.spark}>`{remark}"
    return f"refused: {kept.of_arrays}"
