"""Bugs of late rows that are admitted: which they are, from when on, and what a rebuild keeps."""

from typing import Final

from tests.mutants.mutant import Mutant

_LATE: Final = "tests/unit/derive/late"
_ADMITTED: Final = f"{_LATE}/test_admitted.py"
_COUNTED: Final = f"{_ADMITTED}::test_an_admitted_row_is_counted_from_the_next_cut_on"
_FINAL: Final = f"{_ADMITTED}::test_an_admitted_window_is_final_again"
_REBUILT: Final = f"{_ADMITTED}::test_a_rebuild_keeps_what_was_admitted"


def _of(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    path = f"cdc/{file}.py"
    return Mutant(name=f"admitted: {name}", file=path, old=old, new=new, tests=tests)


DERIVED_ADMITTED: Final = (
    _of(
        "late rows hold whatever was admitted",
        "derive/late/notes",
        'f"NOT ({ADMITTED}) AND {OFFSET} > COALESCE({newest}, -1)"',
        'f"NOT ({ADMITTED})"',
        _COUNTED,
    ),
    _of(
        "what comes after an admission holds no more",
        "derive/late/notes",
        "{OFFSET} > COALESCE({newest}, -1)",
        "{newest} IS NULL",
        _FINAL,
    ),
    _of(
        "what nobody has seen is admitted",
        "derive/late_rows/admitting",
        " AND {CUT} <= {asked.cut:d}",
        "",
        f"{_ADMITTED}::test_what_was_late_after_the_cut_that_was_seen_is_left_out",
    ),
    _of(
        "the next late event at an admitted place is not noted",
        "derive/late_rows/bringing",
        "late.frozen() - taken.places",
        "late.frozen()",
        _FINAL,
    ),
    _of(
        "a place that was admitted once is never final",
        "derive/late_rows/admitting",
        "if offset > upto.get(one, -1)}",
        "if one not in upto}",
        f"{_ADMITTED}::test_what_is_admitted_has_come_in_time",
    ),
    _of(
        "a rebuild knows of no admission",
        "derive/late_rows/bringing",
        "Judge(self.rule, admitted=admitted).judge",
        "Judge(self.rule).judge",
        _REBUILT,
    ),
    _of(
        "another rule forgets what was admitted",
        "derive/late_rows/bringing",
        "Taken(rows=[carried])",
        "NOTHING",
        f"{_ADMITTED}::test_another_rule_keeps_what_was_admitted",
    ),
    _of(
        "the request ends before the commit",
        "derive/keep/late_tables",
        "        step = LateBringing(",
        "        self._end(asked)\n        step = LateBringing(",
        f"{_ADMITTED}::test_a_crash_between_the_steps_neither_loses_nor_doubles",
    ),
    _of(
        "the commit with the reason has all that the cut changes",
        "derive/keep/reopening",
        "admissions=self.before.at_cut",
        "admissions=None",
        f"{_ADMITTED}::test_other_changes_of_the_cut_are_a_commit_without_the_reason",
    ),
    _of(
        "a job that died reopens the windows once more",
        "derive/keep/reopening",
        " or state.admitted <= self._reopened()",
        "",
        f"{_ADMITTED}::test_a_crash_between_the_steps_neither_loses_nor_doubles",
    ),
    _of(
        "a reader is told that all was admitted",
        "client/read/admitted",
        " WHERE {same}",
        "",
        "tests/unit/client/derived/test_admit_asked.py::"
        "test_a_reader_of_changes_sees_which_of_them_was_admitted",
    ),
)
