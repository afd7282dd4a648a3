"""Check that no module repeats what another module exists for."""

import re
from typing import Final

import pytest

from tests.test_layers import modules

PLACES: Final[dict[str, set[str]]] = {
    r"\bfcntl\b": {"cdc.state.file_lock"},
    r"\bos\.replace\b|partial\.replace": {"cdc.state.atomic_file"},
    # A commit's files are new and never replaced; an archive of classes is written by Java.
    r"\bfsync\b": {
        "cdc.state.atomic_file",
        "cdc.lake.files.local",
        "cdc.stack.artifacts.class_archive",
    },
    # It knows for how long an object store is asked again; the others open what is on a disk.
    r"\bDelta(Table|Log)\(": {"cdc.lake.files.delta", "cdc.source.rows.writing", "cdc.demo.report"},
    r"\"Caused by: ": {"cdc.source.connector.failure"},
    r"\[\"tasks\"\]": {"cdc.source.connector.connector_status"},
    r"\"(?i:extra_float_digits|intervalstyle)\"": {"cdc.source.server.printing"},
    r"POSITIVE_INFINITY\"": {"cdc.events.values.pg_types"},
    r"config: Config,?\s+endpoints: Endpoints": {"cdc.state.pipeline"},  # all else takes a Pipeline
    r"\bhttpx\.(Client|get|post|put|request)\b": {"cdc.http_client"},
    # The supervisor polls for ever, failpoints use no libraries; all else uses cdc.waiting.poll.
    r"\btime\.sleep\b|import sleep\b": {"cdc.stack.supervise.supervisor", "cdc.failpoints"},
}
"""Regular expressions of code that only the named modules may contain."""


def spelled_in(pattern: str, sources: dict[str, str]) -> set[str]:
    return {name for name, source in sources.items() if re.search(pattern, source)}


def sources() -> dict[str, str]:
    return {name: path.read_text() for name, path in modules().items()}


@pytest.mark.parametrize(("pattern", "places"), PLACES.items(), ids=PLACES)
def test_only_its_own_module_spells_it(pattern: str, places: set[str]) -> None:
    assert spelled_in(pattern, sources()) == places


def test_the_check_sees_a_copy() -> None:
    copy = {"cdc.lake.lock": "import fcntl", "cdc.lake.layout": "# of a file lock"}

    assert spelled_in(r"\bfcntl\b", copy) == {"cdc.lake.lock"}
