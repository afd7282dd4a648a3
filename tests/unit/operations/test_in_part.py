"""Some rows of a table are read without the others only where the others are right."""

from types import SimpleNamespace
from typing import Any

import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.lake.table.positions import UNREAD
from cdc.operations.resnapshot.target import refuse_in_part


def refuse(*, same: bool = True, stopped: bool = False, reading: int = 1) -> None:
    target: Any = SimpleNamespace(same=same)
    live: Any = SimpleNamespace(
        schema=SimpleNamespace(table="a.t"),
        stopped=stopped,
        position=SimpleNamespace(reading=reading),
    )
    refuse_in_part(target, live)


def test_a_table_that_streams_may_be_read_in_part() -> None:
    refuse()
    refuse(reading=0)


@pytest.mark.parametrize("state", [{"same": False}, {"stopped": True}, {"reading": UNREAD}])
def test_any_other_table_is_read_whole(state: dict[str, Any]) -> None:
    with pytest.raises(CdcError, match=r"^a\.t cannot be read in part") as caught:
        refuse(**state)

    assert caught.value.kind is ErrorKind.CONFLICT
    assert caught.value.remedy == "wal2lake resnapshot a.t, without a predicate"
