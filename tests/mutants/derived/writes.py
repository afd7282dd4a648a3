"""Bugs of how a derived table is written: whole, by differences, kept small, and what changed."""

from typing import Final

from tests.mutants.mutant import Mutant

_KEEP: Final = "tests/unit/derive/keep/"
_WRITTEN: Final = (f"{_KEEP}test_writer.py", f"{_KEEP}test_upkeep.py")
_KNOWN: Final = (f"{_KEEP}test_known_changes.py",)
_MADE: Final = ("tests/unit/lake/create/test_whole_table.py",)
_NUMBERED: Final = (f"{_KEEP}test_derived_tables.py",)
_WRITER: Final = "cdc/derive/step/writer.py"
_UPKEEP: Final = "cdc/derive/step/upkeep.py"
_CHANGES: Final = "cdc/derive/step/known_changes.py"
_WHOLE: Final = "cdc/lake/create/whole_table.py"
_INTO: Final = "cdc/client/derived/"
_BESIDE: Final = ("tests/unit/client/derived/test_rebuild_into.py",)
_STORED: Final = "cdc/derive/keep/stored_table.py"
_DAMAGED: Final = (f"{_KEEP}test_damaged.py",)
DERIVED_WRITES: Final = (
    Mutant(
        name="derived: a version that is gone is not missed",
        file=_STORED,
        old="        if 0 <= version < before.version and is_same:\n",
        new="        if False:\n",
        tests=_DAMAGED,
    ),
    Mutant(
        name="derived: a table of a cut without ids is taken for another",
        file=_STORED,
        old='before.delta_id in {"", self._check.delta_id}',
        new="before.delta_id == self._check.delta_id",
        tests=_DAMAGED,
    ),
    Mutant(
        name="derived: a damaged history is made anew",
        file="cdc/derive/definition/definition.py",
        old="        return self.history is not None or self.late_rows is not None\n",
        new="        return self.late_rows is not None\n",
        tests=_DAMAGED,
    ),
    Mutant(
        name="derived: late rows that somebody changed are made anew",
        file="cdc/derive/definition/definition.py",
        old="        return self.history is not None or self.late_rows is not None\n",
        new="        return self.history is not None\n",
        tests=("tests/unit/derive/late/test_late_steps.py",),
    ),
    Mutant(
        name="derived: a checkpoint that is not written tells nothing",
        file=_UPKEEP,
        old="            refuse_damaged(path)\n",
        new="            pass\n",
        tests=_DAMAGED,
    ),
    Mutant(
        name="derived: a difference from another version is committed",
        file=_WRITER,
        old="        if table.version != since:\n",
        new="        if False:\n",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: the files of a table are deleted before its log",
        file="cdc/lake/table/deletion.py",
        old="        tree.delete_dir_contents(LOG)\n",
        new="        pass\n",
        tests=_DAMAGED,
    ),
    Mutant(
        name="a cut shows the table that is there now",
        file="cdc/lake/table/open_version.py",
        old="    if delta_id and str(opened.metadata().id) != delta_id:\n",
        new="    if False:\n",
        tests=("tests/unit/test_reader.py",),
    ),
    Mutant(
        name="changes: versions of two tables are compared",
        file="cdc/client/read/changes.py",
        old="old.delta_id != new.delta_id if old.delta_id else _is_younger(opened, since)",
        new="False",
        tests=("tests/unit/client/test_changes.py",),
    ),
    Mutant(
        name="derived: rows that are gone are counted",
        file=_WRITER,
        old="    return file.records - (file.vector.cardinality if file.vector else 0)\n",
        new="    return file.records\n",
        tests=(*_WRITTEN, f"{_KEEP}test_scoped_steps.py"),
    ),
    Mutant(
        name="derived: a table that stays open is looked at as it was",
        file=_WRITER,
        old="                self._opened.update_incremental()\n",
        new="                pass\n",
        tests=(f"{_KEEP}test_scoped_steps.py", *_NUMBERED),
    ),
    Mutant(
        name="derived: rows that are to go come again",
        file=_WRITER,
        old="    return changes.filter(pc.invert(changes.column(GONE))).drop_columns([GONE])\n",
        new="    return changes.drop_columns([GONE])\n",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: a table without digests is written to",
        file=_WRITER,
        old="    if not types.keys() <= stored.keys():\n",
        new="    if False:\n",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: a log that is not understood stops the table",
        file=_WRITER,
        old="    except (TakeMergeError, IndexRefusedError) as error:\n",
        new="    except IndexRefusedError as error:\n",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: no file is written without its deleted rows",
        file=_UPKEEP,
        old="combined(files) or purged(files)",
        new="combined(files)",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: small files stay",
        file=_UPKEEP,
        old="combined(files) or purged(files)",
        new="purged(files)",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: upkeep does not say that it has committed",
        file=_UPKEEP,
        old="_combine(committer, mark) or version",
        new="_combine(committer, mark) and version",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: upkeep that fails stops the table",
        file=_UPKEEP,
        old="    except (CombineError, NotUnderstoodError,",
        new="    except (NotUnderstoodError,",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: the log has no checkpoints",
        file=_UPKEEP,
        old="        due = committer.due_for_checkpoint(before, version)\n",
        new="        due = committer.due_for_checkpoint(version, version)\n",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: what no version needs stays",
        file=_UPKEEP,
        old="    clean(path, since)\n",
        new="",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: a version that somebody reads is deleted",
        file=_UPKEEP,
        old="since if hold is None else min(since, hold)",
        new="since",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: files of no version stay",
        file=_UPKEEP,
        old="    delete_strays(path, min(since, time.time() - _UNCOMMITTED_SECONDS))\n",
        new="",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: a file is deleted before its commit",
        file=_UPKEEP,
        old="min(since, time.time() - _UNCOMMITTED_SECONDS)",
        new="since",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: changes of other versions are taken for those of these",
        file=_CHANGES,
        old="(self.old, self.new) == (old, new) and ",
        new="",
        tests=_KNOWN,
    ),
    Mutant(
        name="derived: changes that were read serve for other columns",
        file=_CHANGES,
        old=" and set(columns) <= set(\n            self.rows.added.schema.names\n        )",
        new="",
        tests=_KNOWN,
    ),
    Mutant(
        name="derived: who asks for few changes gets many",
        file=_CHANGES,
        old="return None if known is None or len(known) > most else known",
        new="return known",
        tests=_KNOWN,
    ),
    Mutant(
        name="derived: each table reads the changes for itself",
        file=_CHANGES,
        old="[*self._columns.get(old.path, ()), *columns]",
        new="columns",
        tests=_KNOWN,
    ),
    Mutant(
        name="derived: a column that was dropped is asked for without end",
        file=_CHANGES,
        old="dict.fromkeys([wider, tuple(columns)])",
        new="[wider]",
        tests=_KNOWN,
    ),
    Mutant(
        name="derived: changes are never given up",
        file=_CHANGES,
        old="        self._known.clear()\n",
        new="        pass\n",
        tests=_KNOWN,
    ),
    Mutant(
        name="derived: two equal rows are no equal rows",
        file="cdc/derive/engine/numbered.py",
        old="HAVING count(*) > 1",
        new="HAVING count(*) > 2",
        tests=_NUMBERED,
    ),
    Mutant(
        name="derived: rows are numbered through",
        file="cdc/derive/engine/numbered.py",
        old="(PARTITION BY {by})",
        new="()",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: the rows of before stay in a table that is made anew",
        file=_WHOLE,
        old="removed=list(before.files.values())",
        new="removed=[]",
        tests=_MADE,
    ),
    Mutant(
        name="derived: a table that is made anew is another one",
        file=_WHOLE,
        old="    if before.metadata is not None:\n",
        new="    if False:\n",
        tests=_MADE,
    ),
    Mutant(
        name="derived: a table that is made anew has the features of the old one",
        file=_WHOLE,
        old='({"protocol": protocol}, {"metaData": described})',
        new='({"metaData": described},)',
        tests=_MADE,
    ),
    Mutant(
        name="derived: of many rows only the first are written",
        file=_WHOLE,
        old="rows.slice(begin, _BATCH_ROWS)",
        new="rows.slice(0, _BATCH_ROWS)",
        tests=_MADE,
    ),
    Mutant(
        name="derived: a whole table's entry comes before its files",
        file=_WHOLE,
        old="    store.settle()\n",
        new="",
        tests=_MADE,
    ),
    Mutant(
        name="rebuild --into: it is built at the newest cut, whichever is asked for",
        file=f"{_INTO}rebuild_into.py",
        old="        row = published_row(config, at)\n",
        new="        row = published_row(config, None)\n",
        tests=_BESIDE,
    ),
    Mutant(
        name="rebuild --into: what fails leaves its files",
        file=f"{_INTO}rebuild_into.py",
        old="        delete_table(path)\n",
        new="        pass\n",
        tests=_BESIDE,
    ),
    Mutant(
        name="rebuild --into: copies of a row are one",
        file=f"{_INTO}likeness.py",
        old="HAVING sum({_SURPLUS}) <> 0",
        new="HAVING max({_SURPLUS}) + min({_SURPLUS}) <> 0",
        tests=_BESIDE,
    ),
    Mutant(
        name="rebuild --into: a table that is behind is compared",
        file=f"{_INTO}rebuild_into.py",
        old="    if entry.at_cut != row.cut:\n",
        new="    if False:\n",
        tests=_BESIDE,
    ),
    Mutant(
        name="rebuild --into: a name in the lake is free",
        file=f"{_INTO}free_name.py",
        old="    if _has_files(path):\n",
        new="    if False:\n",
        tests=_BESIDE,
    ),
)
