"""The lines of a log entry: what they say, and what they may not say."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from cdc.lake.commit.deletion_vector import Vector
from cdc.lake.commit.log_entry import Change, Origin, entry, loosened
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.replay import BEFORE_THE_FIRST, LiveFile, after

STATS = '{"numRecords":10,"minValues":{"d":0E-10,"s":"\\"tightBounds\\":true"},"tightBounds":true}'
OLD = Vector(storage="u", place="a" * 20, offset=1, size=40, cardinality=1)
NEW = replace(OLD, place="b" * 20, cardinality=2)
FILE = LiveFile(path="x/a%20b.parquet", size=7, modified=5, stats=STATS, vector=OLD)
MARKED = replace(loosened(FILE), vector=NEW)
FIRST = LiveFile(path="first.parquet", size=8, modified=6, stats='{"numRecords":1}')
ORIGIN = Origin(
    read_version=3, millis=9, metadata='{"wal2lake": 1}', transaction="t", counts={"n": 4}
)


def change(
    *,
    marked: Sequence[tuple[LiveFile, LiveFile]] = (),
    emptied: Sequence[LiveFile] = (),
    added: Sequence[LiveFile] = (),
) -> Change:
    return Change(marked=marked, removed=emptied, added=added)


def lines(of: Change) -> list[dict[str, Any]]:
    text = entry(of, ORIGIN)
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def test_a_marked_file_is_removed_with_its_old_vector_and_added_with_its_new_one() -> None:
    _, removed, added = lines(change(marked=[(FILE, MARKED)]))

    assert removed["remove"] == {
        "path": "x/a%20b.parquet",
        "deletionTimestamp": 9,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": 7,
        "deletionVector": OLD.action(),
        "stats": '{"numRecords":10}',
    }
    assert added["add"] == {
        "path": "x/a%20b.parquet",
        "partitionValues": {},
        "size": 7,
        "modificationTime": 5,
        "dataChange": True,
        "stats": MARKED.stats,
        "deletionVector": NEW.action(),
    }


def test_a_file_without_a_vector_is_removed_without_one() -> None:
    unmarked = replace(FILE, vector=None)

    _, removed, _ = lines(change(marked=[(unmarked, MARKED)]))

    assert "deletionVector" not in removed["remove"]


def test_an_emptied_file_is_only_removed_and_a_new_one_only_added() -> None:
    found = lines(change(emptied=[FILE], added=[FIRST]))

    assert [next(iter(line)) for line in found] == ["commitInfo", "remove", "add"]
    assert found[1]["remove"]["deletionVector"] == OLD.action()
    assert found[2]["add"]["path"] == "first.parquet"
    assert "deletionVector" not in found[2]["add"]


def test_removes_come_before_adds() -> None:
    found = lines(change(marked=[(FILE, MARKED)], emptied=[FIRST]))

    assert [next(iter(line)) for line in found] == ["commitInfo", "remove", "remove", "add"]


def test_the_position_is_in_the_commit() -> None:
    (info,) = lines(change())

    assert info["commitInfo"] == {
        "timestamp": 9,
        "operation": "MERGE",
        "operationParameters": {},
        "readVersion": 3,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": {"n": "4"},
        "userMetadata": '{"wal2lake": 1}',
        "engineInfo": "wal2lake",
        "txnId": "t",
    }


@pytest.mark.parametrize(
    "doubled",
    [
        change(marked=[(FILE, MARKED), (FILE, replace(MARKED, vector=OLD))]),
        change(marked=[(FILE, MARKED)], emptied=[FILE]),
        change(marked=[(FILE, MARKED)], added=[MARKED]),
        change(added=[FIRST, FIRST]),
    ],
)
def test_a_file_is_in_a_commit_once(doubled: Change) -> None:
    with pytest.raises(ValueError, match="twice"):
        entry(doubled, ORIGIN)


@pytest.mark.parametrize("new", [FILE, replace(MARKED, path="another.parquet")])
def test_a_marked_file_gets_a_new_vector_of_its_own(new: LiveFile) -> None:
    with pytest.raises(ValueError, match="new vector"):
        entry(change(marked=[(FILE, new)]), ORIGIN)


def test_statistics_of_a_marked_file_are_kept_but_no_longer_tight() -> None:
    assert loosened(FILE).stats == STATS.removesuffix("true}") + "false}"
    assert loosened(loosened(FILE)) == loosened(FILE)


@pytest.mark.parametrize("stats", ['{"numRecords":10}', '{"numRecords": 10, "tightBounds": true}'])
def test_statistics_of_another_form_are_cut_to_what_is_needed(stats: str) -> None:
    found = loosened(replace(FILE, stats=stats)).stats

    assert found == '{"numRecords":10,"tightBounds":false}'


@pytest.mark.parametrize("stats", [None, "{}", '{"numRecords":null}'])
def test_a_file_of_unknown_length_is_refused(stats: str | None) -> None:
    with pytest.raises(TakeMergeError, match="no number of rows"):
        loosened(replace(FILE, stats=stats))


def test_what_is_written_is_what_is_read() -> None:
    text = entry(change(added=[FILE, FIRST]), ORIGIN)
    state = after(BEFORE_THE_FIRST, 0, map(json.loads, text.splitlines()))
    text = entry(change(marked=[(FILE, MARKED)], emptied=[FIRST]), ORIGIN)

    state = after(state, 1, map(json.loads, text.splitlines()))

    assert (state.version, state.files) == (1, {FILE.path: MARKED})
