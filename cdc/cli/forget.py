"""``wal2lake forget`` leaves nothing of a table's deleted rows in lake and topic."""

import sys
from typing import Annotated

import typer

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.replay import TableArgument
from cdc.cli.show.follow_operation import (
    DetachOption,
    NoJobTimeoutOption,
    ask_and_follow,
    new_operation,
)
from cdc.config import load
from cdc.errors import CdcError, ErrorKind
from cdc.operations.forget.handler import COMMAND
from cdc.tables import TableId

ConfirmOption = Annotated[
    str | None,
    typer.Option("--confirm", metavar="TABLE", help="Repeat the name to forget without a prompt."),
]


def forget(
    table: TableArgument,
    *,
    confirm: ConfirmOption = None,
    detach: DetachOption = False,
    timeout: NoJobTimeoutOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Have the job delete everything that the table's newest cut does not show.

    Raises CONFIG without the table's name, typed or given.
    """
    loaded, name = load(config), str(TableId.parse(table))
    if (_typed(name) if confirm is None else confirm) != name:
        raise CdcError(
            ErrorKind.CONFIG,
            f"forgetting deleted rows of {name} is not confirmed; nothing was changed",
            remedy=f"type its name when asked, or use --confirm {name}",
        )
    operation = new_operation(COMMAND, [name])
    ask_and_follow(loaded, operation, as_json=as_json, detach=detach, timeout=timeout)


def _typed(name: str) -> str:
    if not sys.stdin.isatty():
        return ""
    question = f"This deletes the past of {name}, and all older cuts. Type its name to confirm"
    return str(typer.prompt(question, default="", show_default=False, err=True)).strip()
