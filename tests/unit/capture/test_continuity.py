"""A stored position shows whether the first snapshot is unfinished (real positions)."""

import pytest

from cdc.capture.continuity import in_first_snapshot

STREAMING = {"lsn": 26270640, "lsn_proc": 26270640, "messageType": "COMMIT", "txId": 758}
INSIDE = {"lsn": 26331408, "last_snapshot_record": False, "snapshot_completed": False}


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (STREAMING, False),
        ({**INSIDE, "snapshot": "INITIAL"}, True),
        # A connector killed during a blocking snapshot streams on with this mark (decision 0009).
        ({**INSIDE, "snapshot": "BLOCKING"}, False),
        ({**STREAMING, **INSIDE, "snapshot": "BLOCKING"}, False),
    ],
)
def test_only_an_unfinished_first_snapshot_is_repeated(
    position: dict[str, object], *, expected: bool
) -> None:
    assert in_first_snapshot(position) == expected
