"""What the commands pause, resume and cancel share."""

import json
from typing import Annotated

import typer

from cdc.config import Config
from cdc.operate import operation_files as files
from cdc.operate import parts
from cdc.operate.operation import Operation

IdArgument = Annotated[
    str | None,
    typer.Argument(metavar="[ID]", help="Of the operation; without it, the only one under way."),
]


def say(config: Config, operation: Operation, what: str, *, as_json: bool) -> None:
    """What was set in motion; the job does it, if it runs."""
    state = files.progress(config.state_dir, operation.id).state
    alive = parts.job(config.state_dir).alive
    if as_json:
        facts = {
            "id": operation.id,
            "state": state.value,
            "wish": files.wish(config.state_dir, operation.id),
            "job_alive": alive,
        }
        print(json.dumps(facts))
        return
    done = f"is {state.value}" if state.ended else what
    print(f"operation {operation.id} ({operation.command}) {done}")
    if not (alive or state.ended):
        print("the job is not running: it does so when the job runs again")
