"""Bugs of tables that depend on the time of the cut."""

from typing import Final

from tests.mutants.mutant import Mutant

_ASKED: Final = ("tests/unit/client/derived/test_cut_time_asked.py",)
_KEPT: Final = ("tests/unit/derive/keep/test_cut_time.py",)
DERIVED_TIME: Final = (
    Mutant(
        name="cut_time: that of the newest cut, whichever is asked for",
        file="cdc/client/derived/at_cut.py",
        old="at_time(one, row.committed_at)",
        new="at_time(one, published_row(config, None).committed_at)",
        tests=_ASKED,
    ),
    Mutant(
        name="cut_time: a table is calculated when its inputs change only",
        file="cdc/derive/keep/inputs_at.py",
        old="(self.at, self.time) == (other.at, other.time)",
        new="self.at == other.at",
        tests=_KEPT,
    ),
    Mutant(
        name="cut_time: a step calculates what changed rows lead to",
        file="cdc/derive/scope/of_definition.py",
        old="    if definition.is_timed:\n",
        new="    if False:\n",
        tests=_KEPT,
    ),
    Mutant(
        name="cut_time: there is one before the first commit",
        file="cdc/derive/keep/inputs_at.py",
        old="definition.is_timed and time is None:",
        new="False:",
        tests=_KEPT,
    ),
    Mutant(
        name="cut_time: a time of another zone is taken for one in UTC",
        file="cdc/derive/sql/cut_time.py",
        old='time.astimezone(UTC).isoformat(" ", "microseconds")',
        new='time.replace(tzinfo=UTC).isoformat(" ", "microseconds")',
        tests=("tests/unit/derive/definition/test_cut_time.py",),
    ),
)
