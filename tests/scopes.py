"""Decides which tests stay on one worker, and in which order they begin.

Tests that share servers or a Spark session stay together. What lasts longest begins first, so that
no worker is left with a long scope when the others have nothing left to do.
"""

from typing import Final

LONGEST: Final = (
    "tests/e2e/",
    "tests/spark/apply/",
    "tests/objects/",
    "tests/operations/",
    "tests/source/capture/",
    "tests/spark/",
    "tests/kinds/",
    "tests/e2e/test_d_first_snapshot.py",
    "tests/masked/",
    "tests/derived/",
    "tests/faults/test_corruption.py",
    "tests/faults/",
    "tests/stack/",
    "tests/e2e/test_demo.py",
    "tests/source/",
    "tests/servers/",
    "tests/experiments/",
    "tests/unit/derive/",
    "tests/unit/client/",
    "tests/unit/lake/",
    "tests/unit/",
)
"""Scopes by how long they last; of several that fit a file the longest name counts. The rest, which
is short, is kept together by the directory or file below ``tests``."""


def scope_of(nodeid: str) -> str:
    """Return the scope of a test; the tests of one scope run on one worker, in their order."""
    file = nodeid.partition("::")[0]
    fitting = [scope for scope in LONGEST if file.startswith(scope)]
    return max(fitting, key=len, default="/".join(file.split("/")[:2]))


def place_of(nodeid: str) -> int:
    """Return the place of a test's scope in the order in which they begin."""
    scope = scope_of(nodeid)
    return LONGEST.index(scope) if scope in LONGEST else len(LONGEST)
