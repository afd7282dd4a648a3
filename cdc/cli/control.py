"""``wal2lake pause``, ``resume`` and ``cancel`` act on an operation that has not ended."""

import json
from typing import Annotated

import typer

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.client.operation_list import unfinished_operation
from cdc.client.status import components
from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind
from cdc.state import operation_files as files
from cdc.state.operation import Operation

IdArgument = Annotated[
    str | None,
    typer.Argument(metavar="[ID]", help="The operation's ID; default: the only one under way."),
]


def pause(
    operation_id: IdArgument = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Pause an operation at its next safe point."""
    loaded = load(config)
    operation = unfinished_operation(loaded.state_dir, operation_id)
    files.request_control(loaded.state_dir, operation.id, files.PAUSE)
    _show(loaded, operation, "will pause at its next safe point", as_json=as_json)


def resume(
    operation_id: IdArgument = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Resume a paused operation; raises CONFIG if it is not paused."""
    loaded = load(config)
    operation = unfinished_operation(loaded.state_dir, operation_id)
    if files.control_request(loaded.state_dir, operation.id) != files.PAUSE:
        raise CdcError(
            ErrorKind.CONFIG,
            f"operation {operation.id} is not paused",
            remedy=f"see its state: wal2lake operations {operation.id}",
        )
    files.request_control(loaded.state_dir, operation.id, "")
    _show(loaded, operation, "resumes", as_json=as_json)


def cancel(
    operation_id: IdArgument = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Cancel an operation at its next safe point."""
    loaded = load(config)
    operation = unfinished_operation(loaded.state_dir, operation_id)
    files.request_control(loaded.state_dir, operation.id, files.CANCEL)
    _show(loaded, operation, "will be cancelled at its next safe point", as_json=as_json)


def _show(config: Config, operation: Operation, effect: str, *, as_json: bool) -> None:
    """Print what the job will do with the operation, and a note if the job is not running."""
    state = files.progress(config.state_dir, operation.id).state
    alive = components.job(config.state_dir).alive
    if as_json:
        facts = {
            "id": operation.id,
            "state": state.value,
            "wish": files.control_request(config.state_dir, operation.id),
            "job_alive": alive,
        }
        print(json.dumps(facts))
        return
    outcome = f"is {state.value}" if state.ended else effect
    print(f"operation {operation.id} ({operation.command}) {outcome}")
    if not (alive or state.ended):
        print("the job is not running; this takes effect when it runs again")
