"""Bugs of the rows that are said to differ between two versions of a table."""

from typing import Final

from tests.mutants.mutant import Mutant

_ROWS: Final = "cdc/lake/changed/changed_rows.py"
_FILES: Final = "cdc/lake/changed/changed_files.py"
_COLUMNS: Final = "cdc/lake/changed/read_columns.py"
_DIFFER: Final = ("tests/unit/lake/changed/test_changed_rows.py",)
_NOT_KNOWN: Final = ("tests/unit/lake/changed/test_not_known.py",)
CHANGED_ROWS: Final = (
    Mutant(
        name="changed rows: the vector of the old version is ignored",
        file=_ROWS,
        old="before, after = _live(change.before, deleted), _live(change.after, deleted)",
        new="after = _live(change.after, deleted)\n"
        "        before = BitMap64(range(change.before.records if change.before else 0))",
        tests=_DIFFER,
    ),
    Mutant(
        name="changed rows: the vector of the new version is ignored",
        file=_ROWS,
        old="before, after = _live(change.before, deleted), _live(change.after, deleted)",
        new="before = _live(change.before, deleted)\n"
        "        after = BitMap64(range(change.after.records if change.after else 0))",
        tests=_DIFFER,
    ),
    Mutant(
        name="changed rows: rows that are back are taken for removed ones",
        file=_ROWS,
        old="removed=before - after, added=after - before",
        new="removed=before ^ after, added=BitMap64()",
        tests=_DIFFER,
    ),
    Mutant(
        name="changed rows: a file of the old version alone is forgotten",
        file=_ROWS,
        old="file = change.before or change.after",
        new="file = change.after",
        tests=_DIFFER,
    ),
    Mutant(
        name="changed rows: a file whose rows moved is not compared before that",
        file=_FILES,
        old="            self._end_run(paths)\n",
        new="            pass\n",
        tests=_DIFFER,
    ),
    Mutant(
        name="changed rows: a file is compared from its last change",
        file=_FILES,
        old="self._before.setdefault(path, self._state.files.get(path))",
        new="self._before[path] = self._state.files.get(path)",
        tests=_DIFFER,
    ),
    Mutant(
        name="changed rows: a commit that loses rows is said to move them",
        file=_FILES,
        old="        and _rows(before, paths) == _rows(following, paths)\n",
        new="",
        tests=_DIFFER,
    ),
    Mutant(
        name="changed rows: any commit may be said to move rows",
        file=_FILES,
        old="        and operations <= _MOVING\n",
        new="",
        tests=_DIFFER,
    ),
    Mutant(
        name="changed rows: a log that contradicts itself is believed",
        file=_FILES,
        old="        _refuse_unknown(self._state, entry)\n",
        new="",
        tests=_NOT_KNOWN,
    ),
    Mutant(
        name="changed rows: only the first and the last schema are compared",
        file=_COLUMNS,
        old="if any(other != first for other in others):",
        new="if others and others[-1] != first:",
        tests=_NOT_KNOWN,
    ),
    Mutant(
        name="changed rows: a table created anew is the same",
        file=_COLUMNS,
        old="for _, metadata in described}) > 1:",
        new="for _, metadata in described}) > 9:",
        tests=_NOT_KNOWN,
    ),
    Mutant(
        name="changed rows: more than are worth it are read",
        file=_ROWS,
        old="> most:",
        new="> 10 * most:",
        tests=_NOT_KNOWN,
    ),
)
