"""Whatever lies in the directory of operations, the valid ones are found."""

import json
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdc.state import operation_files as files
from cdc.state.operation import OperationState, operation_facts, progress_facts
from tests.unit.desk_room import RUNNING, operation
from tests.unit.state.test_request_reader import CONTENTS, FORMS, VALUES, put

GOOD = operation(1)
OTHER = operation(2)
CHANGED = st.builds(
    lambda facts, name, value: json.dumps({**facts, name: value}).encode(),
    st.sampled_from([operation_facts(OTHER), progress_facts(RUNNING)]),
    st.sampled_from([*operation_facts(OTHER), *progress_facts(RUNNING)]),
    VALUES,
)
STEMS = st.sampled_from([OTHER.id, "a", "../a", "a b", "é", "x" * 200, GOOD.id])
KINDS = st.sampled_from(["operation", "progress", "wish", "ending"])


def _changed(name: str, value: object) -> bytes:
    """Return the progress of an operation with one value changed."""
    return json.dumps({**progress_facts(RUNNING), name: value}).encode()


@settings(deadline=None, max_examples=300)
@example([(GOOD.id, "progress", "file", _changed("results", [None]))])
@example([(GOOD.id, "progress", "file", _changed("commit", {"result": None, "settles": []}))])
@given(st.lists(st.tuples(STEMS, KINDS, FORMS, CONTENTS | CHANGED), max_size=6))
def test_nothing_in_the_directory_keeps_operations_from_being_found(
    given_files: list[tuple[str, str, str, bytes]],
) -> None:
    place = Path(tempfile.mkdtemp())
    try:
        files.ask(place, GOOD)
        folder = files.directory(place)
        for stem, kind, form, content in given_files:
            name = f"{stem.replace('/', '_')}.{kind}"
            if name != f"{GOOD.id}.operation":
                put(folder, os.fsencode(name), form, content)

        found = files.all_operations(place)

        assert GOOD in found
        assert {each.id for each in found} <= {GOOD.id, OTHER.id, "a"}
        for each in found:
            progress = files.progress(place, each.id)
            assert isinstance(progress.state, OperationState)
            assert progress.id == each.id
            assert isinstance(progress.starts + progress.rows + progress.tables_done, int)
            assert files.control_request(place, each.id) in {"", files.PAUSE, files.CANCEL}
            files.ending(place, each.id)
        assert [each.id for each in files.unfinished(place)] == [
            each.id for each in found if not files.progress(place, each.id).state.ended
        ]
    finally:
        shutil.rmtree(place)
