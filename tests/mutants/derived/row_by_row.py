"""Bugs of queries whose rows are calculated one by one."""

from typing import Final

from tests.mutants.mutant import Mutant

_TESTS: Final = (
    "tests/unit/derive/scoped/test_row_by_row.py",
    "tests/unit/derive/scoped/test_scoped_is_whole.py",
)
_STEP: Final = "cdc/derive/step/row_by_row.py"
ROW_BY_ROW: Final = (
    Mutant(
        name="row by row: rows that only changed places are new",
        file=_STEP,
        old=" WHERE f.{COPY} <= m.more ",
        new=" WHERE true ",
        tests=_TESTS,
    ),
    Mutant(
        name="row by row: new copies have the numbers of old ones",
        file=_STEP,
        old="(m.there + f.{COPY} AS {COPY})",
        new="(f.{COPY} AS {COPY})",
        tests=_TESTS,
    ),
    Mutant(
        name="row by row: the lowest copies go, and leave a gap",
        file=_STEP,
        old="WHERE s.{COPY} > m.there + m.more",
        new="WHERE s.{COPY} <= -m.more",
        tests=_TESTS,
    ),
    Mutant(
        name="row by row: what removed rows gave stays",
        file=_STEP,
        old="SELECT {ROW_HASH}, -1 FROM {_LEFT}",
        new="SELECT {ROW_HASH}, 0 FROM {_LEFT}",
        tests=_TESTS,
    ),
    Mutant(
        name="row by row: a key is unique among the new rows alone",
        file=_STEP,
        old='    return f"({new} UNION ALL {stay})"\n',
        new='    return f"({new})"\n',
        tests=_TESTS,
    ),
    Mutant(
        name="row by row: a key of a row that is gone is taken",
        file=_STEP,
        old="FROM ({there}) ANTI JOIN ({gone}) USING ({ROW_HASH}, {COPY})",
        new="FROM ({there})",
        tests=_TESTS,
    ),
    Mutant(
        name="row by row: two rows may have no key",
        file=_STEP,
        old='f"s.{name} IS NOT DISTINCT FROM c.{name}"',
        new='f"s.{name} = c.{name}"',
        tests=_TESTS,
    ),
    Mutant(
        name="row by row: a table that lacks rows is believed",
        file=_STEP,
        old="    if missing:\n",
        new="    if False:\n",
        tests=_TESTS,
    ),
    Mutant(
        name="row by row: DISTINCT is calculated so",
        file="cdc/derive/scope/by_row.py",
        old='frozenset({"expressions", ',
        new='frozenset({"distinct", "expressions", ',
        tests=_TESTS,
    ),
    Mutant(
        name="row by row: aggregates are calculated so",
        file="cdc/derive/scope/by_row.py",
        old='frozenset({"expressions", ',
        new='frozenset({"group", "expressions", ',
        tests=_TESTS,
    ),
    Mutant(
        name="row by row: sessions are calculated so",
        file="cdc/derive/scope/by_row.py",
        old="    if occurrence.together or not",
        new="    if not",
        tests=_TESTS,
    ),
)
