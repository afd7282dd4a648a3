"""Test which files are live after a list of actions, whatever their order within a commit."""

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from cdc.lake.commit.deletion_vector import Vector
from cdc.lake.commit.log_entry import added, removed
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.replay import BEFORE_THE_FIRST, LiveFile, after
from tests.unit.lake.commit.small_table import metadata_action, protocol_action

BARE = LiveFile(path="a", size=1, modified=1, stats='{"numRecords":9}')
OLD = replace(BARE, vector=Vector(storage="u", place="o" * 20, offset=1, size=2, cardinality=1))
NEW = replace(BARE, vector=Vector(storage="u", place="o" * 20, offset=11, size=2, cardinality=2))
OTHER = replace(BARE, path="b")


def add(file: LiveFile) -> dict[str, Any]:
    return {"add": added(file)}


def remove(file: LiveFile) -> dict[str, Any]:
    return {"remove": removed(file, 1)}


@pytest.mark.parametrize("lines", list(permutations([remove(OLD), add(NEW), add(OTHER)])))
def test_actions_have_no_order(lines: tuple[dict[str, Any], ...]) -> None:
    state = after(BEFORE_THE_FIRST, 4, [add(OLD)])

    assert after(state, 5, lines).files == {"a": NEW, "b": OTHER}


@pytest.mark.parametrize("wrong", [BARE, NEW, OTHER])
def test_a_file_is_removed_only_with_its_own_vector(wrong: LiveFile) -> None:
    state = after(BEFORE_THE_FIRST, 4, [add(OLD)])

    assert after(state, 5, [remove(wrong)]).files == {"a": OLD}
    assert after(state, 5, [remove(OLD)]).files == {}


def test_two_vectors_of_one_file_are_refused() -> None:
    state = after(BEFORE_THE_FIRST, 4, [add(OLD)])

    with pytest.raises(TakeMergeError, match="two deletion vectors"):
        after(state, 5, [add(NEW)])
    with pytest.raises(TakeMergeError, match="two deletion vectors"):
        after(state, 5, [remove(OLD), add(NEW), add(BARE)])


def test_a_file_may_be_added_again_with_other_statistics() -> None:
    state = after(BEFORE_THE_FIRST, 4, [add(OLD)])
    changed = replace(OLD, stats="{}")

    assert after(state, 5, [add(changed)]).files == {"a": changed}


def test_protocol_and_metadata_are_the_last_ones() -> None:
    state = after(
        BEFORE_THE_FIRST, 0, [{"metaData": metadata_action()}, {"protocol": protocol_action()}]
    )
    changed = after(state, 1, [{"metaData": metadata_action({"new": "long"})}, add(BARE)])

    assert state.metadata is not None
    assert [column.name for column in state.metadata.columns] == ["id", "name", "_cdc_offset"]
    assert changed.metadata is not None
    assert [column.physical for column in changed.metadata.columns] == ["c-1"]
    assert changed.protocol == state.protocol is not None
    assert state.files == {}


@pytest.mark.parametrize(
    "action",
    [
        {"add": added(BARE) | {"partitionValues": {"day": "1"}}},
        {"add": added(BARE) | {"baseRowId": 0}},
        {"sidecar": {"path": "x"}},
    ],
)
def test_what_our_tables_do_not_have_is_refused(action: dict[str, Any]) -> None:
    with pytest.raises(TakeMergeError):
        after(BEFORE_THE_FIRST, 0, [action])
