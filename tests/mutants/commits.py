"""Bugs of a commit without Spark: of its rows, its deletion vectors, its entry, and upkeep."""

from typing import Final

from tests.mutants.mutant import Mutant

_UNIT: Final = "tests/unit/lake/commit/"
_COMMITTER: Final = (f"{_UNIT}test_committer.py", f"{_UNIT}test_committer_refused.py")
_COMBINED: Final = (f"{_UNIT}test_combined.py", f"{_UNIT}test_combined_meanwhile.py")
_STRAYS: Final = "tests/unit/lake/test_strays.py"
_OLD: Final = "tests/unit/lake/test_old_versions.py"
COMMITS: Final = (
    Mutant(
        name="commit: a vector of the wrong file",
        file="cdc/lake/commit/marks.py",
        old="vector=vectors[path])",
        new="vector=vectors[min(vectors)])",
        tests=_COMMITTER,
    ),
    Mutant(
        name="commit: a row number off by one",
        file="cdc/lake/commit/marks.py",
        old="merged(old, numbers, live[path].records)",
        new="merged(old, [(n + 1) % live[path].records for n in numbers], live[path].records)",
        tests=_COMMITTER,
    ),
    Mutant(
        name="commit: a row that is deleted already is deleted again",
        file="cdc/lake/commit/deletion_vector.py",
        old="    if len(rows) != len(old) + len(numbers):\n",
        new="    if False:\n",
        tests=(f"{_UNIT}test_deletion_vector.py", *_COMMITTER),
    ),
    Mutant(
        name="commit: an entry before its data",
        file="cdc/lake/commit/committer.py",
        old="        self._store.write(file.path, content)\n"
        "        reach(Failpoint.AFTER_ROWS_WRITE)\n",
        new="        from threading import Timer\n\n"
        "        Timer(1, self._store.write, (file.path, content)).start()\n",
        tests=(f"{_UNIT}test_committer.py::test_all_that_an_entry_names_is_there_before_it",),
    ),
    Mutant(
        name="commit: an entry before the names of its files are durable",
        file="cdc/lake/commit/committer.py",
        old="        self._store.settle()\n        counts = ",
        new="        counts = ",
        tests=(f"{_UNIT}test_committer.py::test_all_that_an_entry_names_is_there_before_it",),
    ),
    Mutant(
        name="commit: two vectors for one file in one commit",
        file="cdc/lake/commit/log_entry.py",
        old="    _refuse_doubles(change)\n",
        new="",
        tests=(f"{_UNIT}test_log_entry.py",),
    ),
    Mutant(
        name="commit: a position without rows",
        file="cdc/lake/commit/committer.py",
        old="removed=marks.emptied, added=added)",
        new="removed=marks.emptied, added=[])",
        tests=_COMMITTER,
    ),
    Mutant(
        name="commit: an entry is replaced",
        file="cdc/lake/files/local.py",
        old="                os.link(whole, path)\n",
        new="                os.replace(whole, path)\n",
        tests=(f"{_UNIT}test_put.py", *_COMMITTER),
    ),
    Mutant(
        name="combined files: rows that were deleted meanwhile are back",
        file="cdc/lake/commit/combined.py",
        old="                since |= BitMap64(source.moved(deleted(now)))\n",
        new="                pass\n",
        tests=_COMBINED,
    ),
    Mutant(
        name="combined files: rows have the numbers of their old file",
        file="cdc/lake/commit/combined.py",
        old="self.begin + row - before(row)",
        new="self.begin + row",
        tests=_COMBINED,
    ),
    Mutant(
        name="combined files: a file that has left takes its rows along",
        file="cdc/lake/commit/combined.py",
        old="BitMap64(range(source.begin, source.begin + source.rows))",
        new="BitMap64()",
        tests=_COMBINED,
    ),
    Mutant(
        name="combined files: rows that a RESTORE brought back are lost",
        file="cdc/lake/commit/combined.py",
        old="        if not self.deleted <= deleted:\n",
        new="        if False:\n",
        tests=(f"{_UNIT}test_combined_meanwhile.py::test_rows_that_are_back_are_not_lost",),
    ),
    Mutant(
        name="combined files: a file that was vacuumed takes its place",
        file="cdc/lake/commit/committer.py",
        old="        if self._store.size(combined.file.path) != combined.file.size:\n",
        new="        if False:\n",
        tests=_COMBINED,
    ),
    Mutant(
        name="combined files: their commit claims to change rows",
        file="cdc/lake/commit/log_entry.py",
        old="    data_change = not change.moves\n",
        new="    data_change = True\n",
        tests=_COMBINED,
    ),
    Mutant(
        name="combined files: a file larger than the bound is read",
        file="cdc/lake/upkeep/driver_files.py",
        old="    if file.size >= LOCAL_BYTES:\n",
        new="    if False:\n",
        tests=("tests/unit/lake/test_driver_files.py",),
    ),
    Mutant(
        name="combined files: one work has no bound",
        file="cdc/lake/upkeep/driver_files.py",
        old="by_size[:within]",
        new="by_size[: len(fit)]",
        tests=("tests/unit/lake/test_driver_files.py",),
    ),
    Mutant(
        name="cleaning: files of kept versions are deleted",
        file="cdc/lake/upkeep/old_versions.py",
        old="            removed.pop(name, None)\n",
        new="            pass\n",
        tests=(f"{_OLD}::test_a_vector_file_stays_while_one_of_its_vectors_is_used",),
    ),
    Mutant(
        name="cleaning: a file that has come back is deleted",
        file="cdc/lake/upkeep/version_files.py",
        old="range(keeping.oldest + 1, keeping.newest + 1)",
        new="range(0)",
        tests=(f"{_OLD}::test_a_file_that_has_come_back_stays",),
    ),
    Mutant(
        name="cleaning: entries go before the files that they removed",
        file="cdc/lake/upkeep/old_versions.py",
        old="    deleted = sum(store.delete(name) for name in names)\n",
        new="    for name in obsolete(times, since):\n"
        '        store.delete(f"{LOG}/{name}")\n'
        "    deleted = sum(store.delete(name) for name in names)\n",
        tests=(f"{_OLD}::test_a_cleaning_that_dies_between_two_deletions_loses_nothing",),
    ),
    Mutant(
        name="cleaning: versions that somebody reads are cleaned",
        file="cdc/lake/upkeep/kept_versions.py",
        old="return expired if hold is None else min(hold, expired)",
        new="return expired",
        tests=("tests/unit/lake/test_kept_versions.py",),
    ),
    Mutant(
        name="strays: files of kept versions are deleted",
        file="cdc/lake/upkeep/strays.py",
        old="    return [name for name in old if name not in found]\n",
        new="    return old\n",
        tests=(_STRAYS,),
    ),
    Mutant(
        name="strays: a file is deleted that is being written",
        file="cdc/lake/upkeep/maintenance.py",
        old="min(self._kept.since(), time.time() - UNCOMMITTED_SECONDS)",
        new="self._kept.since()",
        tests=(_STRAYS,),
    ),
    Mutant(
        name="strays: a file that the log names by a URL is one",
        file="cdc/lake/upkeep/strays.py",
        old="[name for name in found if not is_inside(name)]",
        new="list[str]()",
        tests=(_STRAYS,),
    ),
    Mutant(
        name="strays: a name is compared as the log writes it",
        file="cdc/lake/upkeep/version_files.py",
        old='    yield unquote(action["path"])\n',
        new='    yield action["path"]\n',
        tests=(_STRAYS,),
    ),
    Mutant(
        name="strays: files of other programs are deleted",
        file="cdc/lake/upkeep/strays.py",
        old="not any(part.startswith(_HIDDEN) for part in PurePosixPath(file.path).parts)",
        new='not file.path.startswith("_delta_log")',
        tests=(_STRAYS,),
    ),
    Mutant(
        name="properties: those that do not change are lost",
        file="cdc/lake/commit/table_metadata.py",
        old="{**self.properties, **changes}",
        new="{**changes}",
        tests=("tests/unit/lake/commit/test_alter.py",),
    ),
    Mutant(
        name="properties: a table with unknown ones is changed",
        file="cdc/lake/commit/alter.py",
        old="    if (reason := refusal(protocol, metadata)) is not None:\n",
        new="    if (reason := None) is not None:\n",
        tests=("tests/unit/lake/commit/test_alter.py",),
    ),
    Mutant(
        name="altered: a new column takes the id of an older one",
        file="cdc/lake/commit/alteration.py",
        old="ColumnIds(int(last))",
        new="ColumnIds(len(table.columns))",
        tests=("tests/unit/lake/commit/test_alter.py",),
    ),
    Mutant(
        name="altered: the highest id is forgotten",
        file="cdc/lake/commit/alteration.py",
        old=", {LAST_ID: str(ids.last)})",
        new=")",
        tests=("tests/unit/lake/commit/test_alter.py",),
    ),
    Mutant(
        name="altered: names that differ in case alone are two",
        file="cdc/lake/commit/alteration.py",
        old="        if name.lower() in seen:\n",
        new="        if name in seen:\n",
        tests=("tests/unit/lake/commit/test_alter.py",),
    ),
    Mutant(
        name="upkeep: a table that no reader can open goes on",
        file="cdc/lake/upkeep/driver_upkeep.py",
        old="            if not last.is_whole:\n",
        new="            if False:\n",
        tests=("tests/unit/lake/test_driver_upkeep.py",),
    ),
    Mutant(
        name="upkeep: a checkpoint that was not written stops its table",
        file="cdc/lake/upkeep/driver_upkeep.py",
        old="                refuse_damaged(self._committer.path)\n",
        new='                raise CdcError(ErrorKind.CHAIN_BROKEN, "no checkpoint")\n',
        tests=("tests/unit/lake/test_driver_upkeep.py",),
    ),
    Mutant(
        name="upkeep: what an older copy lacks is called unreadable",
        file="cdc/lake/table/entry_file.py",
        old="if version not in entries)",
        new="if version in entries and False)",
        tests=("tests/unit/lake/test_driver_upkeep.py",),
    ),
)
