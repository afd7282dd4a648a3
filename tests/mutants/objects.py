"""Bugs of a lake in an object store: what an answer means, and who may write."""

from typing import Final

from tests.mutants.mutant import Mutant

_CONTRACT: Final = "tests/objects/test_contract.py"
_COMPACTED: Final = "tests/objects/test_compacted.py"
_NO_ANSWER: Final = "tests/objects/test_no_answer.py"
OBJECTS: Final = (
    Mutant(
        name="objects: an entry is replaced",
        file="cdc/lake/files/s3.py",
        old='mode="create", ',
        new="",
        tests=(_CONTRACT,),
    ),
    Mutant(
        name="objects: a put whose answer is lost is taken for somebody else's",
        file="cdc/lake/files/s3.py",
        old="        if found != content:\n",
        new='        if found != b"":\n',
        tests=(_CONTRACT,),
    ),
    Mutant(
        name="objects: who has lost the lake writes",
        file="cdc/lake/files/s3.py",
        old="    def _put(self, key: str, content: bytes) -> None:\n"
        "        fence.refuse_fenced(self.path)\n",
        new="    def _put(self, key: str, content: bytes) -> None:\n",
        tests=(_CONTRACT,),
    ),
    Mutant(
        name="objects: delta-rs appends behind its own entry",
        file="cdc/lake/table/known_commit.py",
        old="    if is_local(path):\n",
        new="    if path:\n",
        tests=("tests/objects/test_commits.py",),
    ),
    Mutant(
        name="objects: delta-rs gives up after ten attempts",
        file="cdc/lake/files/delta.py",
        old='        "max_retries": "1000",\n',
        new='        "max_retries": "10",\n',
        tests=(_NO_ANSWER,),
    ),
    Mutant(
        name="objects: delta-rs compacts in a store",
        file="cdc/lake/upkeep/control_tables.py",
        old="    if is_local(path):\n",
        new="    if path:\n",
        tests=(_COMPACTED,),
    ),
    Mutant(
        name="objects: a file of an earlier version is in the way of a compaction",
        file="cdc/lake/commit/plain_combined.py",
        old="_completed(piece, schema).cast(schema)",
        new="piece.cast(schema)",
        tests=(_COMPACTED,),
    ),
    Mutant(
        name="objects: a table with a timestamp without a zone is never compacted",
        file="cdc/lake/upkeep/compacted.py",
        old="{PLAIN, WITH_FEATURES}",
        new="{PLAIN}",
        tests=(_COMPACTED,),
    ),
    Mutant(
        name="objects: a compaction of rows that are marked as deleted",
        file="cdc/lake/upkeep/compacted.py",
        old=" or more:",
        new=":",
        tests=(_COMPACTED,),
    ),
    Mutant(
        name="objects: a derived table stops because the store does not answer",
        file="cdc/derive/keep/derived_tables.py",
        old="            refuse_silence(error)\n",
        new="",
        tests=(_NO_ANSWER,),
    ),
    Mutant(
        name="objects: a checkpoint without an answer is a table that is broken",
        file="cdc/lake/commit/snapshot.py",
        old="            refuse_silence(error)\n",
        new="",
        tests=(_NO_ANSWER,),
    ),
    Mutant(
        name="objects: a file that is gone is taken for silence",
        file="cdc/lake/files/unreachable.py",
        old="_OF_A_STORE.search(text) and not _ANSWERED.search(text)",
        new="_OF_A_STORE.search(text)",
        tests=(_NO_ANSWER,),
    ),
    Mutant(
        name="objects: an older version says what the newest one does",
        file="cdc/lake/table/commit_info.py",
        old="entry_name(table.version())",
        new='entry_name(table.history(1)[0]["version"])',
        tests=("tests/objects/test_versions.py",),
    ),
    Mutant(
        name="objects: a lease counts from its answer",
        file="cdc/lake/files/lease.py",
        old="        self._until = began + HELD_SECONDS\n",
        new="        self._until = self._clock() + HELD_SECONDS\n",
        tests=("tests/objects/test_lease.py",),
    ),
)
