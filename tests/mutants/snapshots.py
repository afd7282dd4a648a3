"""Bugs of readings: of the first snapshot by COPY, of small tables, and of few rows of the log."""

from typing import Final

from tests.mutants.mutant import Mutant

_RANGES: Final = ("tests/source/tables/test_copied_ranges.py",)
_DIFFERENCE: Final = "tests/spark/operations/test_small_difference.py"
_REWRITTEN: Final = "tests/spark/lake/test_rewritten.py"
_COMMIT: Final = "tests/spark/operations/test_small_commit.py"
SNAPSHOTS: Final = (
    Mutant(
        name="reading: one of some keys sweeps all other rows",
        file="cdc/operations/resnapshot/small_commit.py",
        old="self.target.schema, reading.keys)",
        new="self.target.schema, None)",
        tests=(f"{_COMMIT}::test_a_reading_of_some_keys_leaves_all_other_rows",),
    ),
    Mutant(
        name="reading: a key in another spelling becomes a row of its own",
        file="cdc/operations/resnapshot/small_difference.py",
        old="        if wanted.keys() - among:\n",
        new="        if False:\n",
        tests=(f"{_DIFFERENCE}::test_a_key_in_another_spelling_is_left_to_spark",),
    ),
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
        old="        kept, refused = converted(texts, self.target)\n",
        new="        kept, refused = converted(texts, self.target)\n"
        "        copies.numbered(kept.slice(0, len(refused)))\n",
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
    Mutant(
        name="small reading: 0.0 and -0.0 are taken for the same",
        file="cdc/operations/resnapshot/small_difference.py",
        old="    return list(map(repr, values)) if",
        new="    return values if",
        tests=(_DIFFERENCE,),
    ),
    Mutant(
        name="small reading: a changed row is added beside the old one",
        file="cdc/operations/resnapshot/small_commit.py",
        old="held.places(found.replaced + found.swept)",
        new="held.places(found.swept)",
        tests=(_COMMIT,),
    ),
    Mutant(
        name="small reading: of rows with the same key the last one counts",
        file="cdc/operations/resnapshot/small_difference.py",
        old="if one is None or found.setdefault(one, number) != number:",
        new="found[one or ()] = number\n        if False:",
        tests=(_COMMIT,),
    ),
    Mutant(
        name="small reading: rows are where they would be without deleted ones",
        file="cdc/operations/resnapshot/held_rows.py",
        old="        places.append(left)\n",
        new="        places.append(np.arange(len(left), dtype=np.int64))\n",
        tests=(_COMMIT,),
    ),
    Mutant(
        name="rounds: a topic with many events is taken for one with few",
        file="cdc/apply/rounds/log_slice.py",
        old="few = sorted((n, topic) for topic, n in counts.items() if n <= most)",
        new="few = sorted((n, topic) for topic, n in counts.items())",
        tests=("tests/unit/land/test_few_rows.py",),
    ),
    Mutant(
        name="rounds: few rows come with those that are applied already",
        file="cdc/apply/rounds/log_slice.py",
        old="FewRows(topics, rows_beyond(found, after))",
        new="FewRows(topics, found)",
        tests=("tests/unit/land/test_few_rows.py",),
    ),
    Mutant(
        name="rewritten: deleted rows are there again",
        file="cdc/lake/alter/rewrite.py",
        old="rows_left(stored_rows(files, file, metadata), deleted.of(file))",
        new="stored_rows(files, file, metadata)",
        tests=(_REWRITTEN,),
    ),
    Mutant(
        name="rewritten: an instant of another zone is taken for one in UTC",
        file="cdc/lake/alter/rewriting.py",
        old='    if not text.endswith("+00"):\n        raise ValueError("an instant")\n'
        "    return _moment(text)",
        new="    return _moment(text[:19])",
        tests=("tests/unit/lake/test_rewriting.py",),
    ),
)
