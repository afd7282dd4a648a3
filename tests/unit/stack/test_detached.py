"""The command line of the supervisor that ``up --detach`` starts."""

from pathlib import Path

import pytest

from cdc.stack.supervise.detached import command


@pytest.mark.parametrize("new_epoch", [True, False])
def test_the_supervisor_is_told_of_a_new_epoch(*, new_epoch: bool) -> None:
    arguments = command(Path("/w.yaml"), new_epoch=new_epoch)

    assert arguments[1:4] == ["-m", "cdc", "up"]
    assert ("--new-epoch" in arguments) == new_epoch
    assert "--detach" not in arguments
    assert arguments[arguments.index("--config") + 1] == "/w.yaml"
