"""The command line of the supervisor that ``up --detach`` starts."""

from pathlib import Path

import pytest

from cdc.stack.supervise.detached import command

OPTIONS = {"--new-epoch", "--await-tables"}


@pytest.mark.parametrize("options", [[], ["--new-epoch"], ["--new-epoch", "--await-tables"]])
def test_the_supervisor_gets_the_options(options: list[str]) -> None:
    arguments = command(Path("/w.yaml"), options)

    assert arguments[1:4] == ["-m", "cdc", "up"]
    assert [argument for argument in arguments if argument in OPTIONS] == options
    assert "--detach" not in arguments
    assert arguments[arguments.index("--config") + 1] == "/w.yaml"
