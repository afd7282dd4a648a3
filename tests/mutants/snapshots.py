"""Bugs of the first snapshot by COPY: of its moment, its ranges, and the end of what is read."""

from typing import Final

from tests.mutants.mutant import Mutant

_RANGES: Final = ("tests/source/tables/test_copied_ranges.py",)
SNAPSHOTS: Final = (
    Mutant(
        name="copied: a range ends one page early",
        file="cdc/operations/first_snapshot/page_range.py",
        old="_tid(self.end)))",
        new="_tid(self.end - 1)))",
        tests=_RANGES,
    ),
    Mutant(
        name="copied: a reader has a moment of its own",
        file="cdc/operations/first_snapshot/reader.py",
        old="                enter_snapshot(connection, self.snapshot, self.salt)\n",
        new="                connection.autocommit = False\n",
        tests=_RANGES,
    ),
    Mutant(
        name="copied: a range that was interrupted is forgotten",
        file="cdc/operations/first_snapshot/reader.py",
        old="            connection = self._sessions.open()\n"
        "            return self._once(connection, table, pages)\n",
        new="            connection = self._sessions.open()\n"
        "            return CopiedRange([], 0, [])\n",
        tests=_RANGES,
    ),
    Mutant(
        name="copied: copies of equal rows are numbered anew in each block",
        file="cdc/operations/first_snapshot/reader.py",
        old="table.converted(texts, copies)",
        new="table.converted(texts, table.copies())",
        tests=_RANGES,
    ),
    Mutant(
        name="copied: a row that is refused takes a number",
        file="cdc/operations/first_snapshot/copied_table.py",
        old="        kept = made.rows.filter(pc.is_null(made.reasons))\n"
        "        return self._stored(copies.numbered(kept)),",
        new="        kept = copies.numbered(made.rows).filter(pc.is_null(made.reasons))\n"
        "        return self._stored(kept),",
        tests=_RANGES,
    ),
    Mutant(
        name="copied: rows that ended early are all",
        file="cdc/source/rows/copy.py",
        old="        if result.status != ExecStatus.COMMAND_OK:\n",
        new="        if False:\n",
        tests=(
            "tests/source/server/test_connection_refusal.py::test_a_copy_brings_every_row_or_says_that_it_ended_early",
        ),
    ),
    Mutant(
        name="copied: after a kill, tables without rows are left",
        file="cdc/operations/first_snapshot/handler.py",
        old="if live.position.reading == UNREAD)",
        new="if live.position.reading > UNREAD)",
        tests=("tests/unit/operations/test_first_snapshot.py",),
    ),
    Mutant(
        name="copied: the position is beyond the moment",
        file="cdc/operations/resnapshot/place.py",
        old="        offset=entry.offset,\n",
        new="        offset=entry.offset + 1,\n",
        tests=("tests/unit/operations/test_taking.py",),
    ),
    Mutant(
        name="copied: the rows are in the table before their reading is kept",
        file="cdc/operations/first_snapshot/taking.py",
        old="        self._keep(files, position)\n        self.committer.append(files, position)\n",
        new="        self.committer.append(files, position)\n        self._keep(files, position)\n",
        tests=("tests/unit/operations/test_taking.py",),
    ),
)
