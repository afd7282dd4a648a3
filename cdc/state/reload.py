"""Asks the running job to reload its configuration, and carries its answer.

The command writes ``<state_dir>/job.reload`` with a new token. The job reads the configuration file
again and writes ``job.reloaded`` with that token and the error, if there was one. A job that was
down finds the request when it starts.
"""

import json
import secrets
from pathlib import Path
from typing import Any, Final

from cdc.errors import CdcError, ErrorKind
from cdc.state.atomic_file import write_private
from cdc.state.directory import read_json
from cdc.waiting import poll

LOOK_SECONDS: Final = 0.2


def ask_reload(state_dir: Path) -> str:
    """Ask the job to read its configuration again; return the token of this request."""
    token = secrets.token_hex(8)
    state_dir.mkdir(parents=True, exist_ok=True)
    write_private(_asked(state_dir), json.dumps({"token": token}))
    return token


def unanswered_token(state_dir: Path) -> str | None:
    """Return the token of the newest request, or None if the job has answered it."""
    token = _token(read_json(_asked(state_dir)))
    return None if token == _token(read_json(_answered(state_dir))) else token


def answer_reload(state_dir: Path, token: str, error: CdcError | None = None) -> None:
    """Answer the request: the job has loaded the configuration, or failed with ``error``."""
    write_private(_answered(state_dir), json.dumps({"token": token, "error": _facts(error)}))


def await_answer(state_dir: Path, token: str, timeout: float) -> None:
    """Wait for the answer; raises the job's error, or TIMEOUT after ``timeout`` seconds."""
    answer = poll(
        lambda: read_json(_answered(state_dir)),
        lambda answer: _token(answer) == token,
        every=LOOK_SECONDS,
        seconds=timeout,
    )
    if answer is None:
        raise CdcError(
            ErrorKind.TIMEOUT,
            f"the job did not reload its configuration within {timeout:g} s",
            remedy="check wal2lake status: the job reloads it as soon as it can",
        )
    if answer.get("error"):
        raise _error(answer["error"])


def _facts(error: CdcError | None) -> dict[str, str] | None:
    if error is None:
        return None
    return {
        "kind": error.kind.value,
        "message": error.message,
        "detail": error.detail,
        "remedy": error.remedy,
    }


def _error(facts: dict[str, Any]) -> CdcError:
    return CdcError(
        ErrorKind(facts["kind"]),
        f"the job refused the new configuration: {facts['message']}",
        detail=facts["detail"],
        remedy=facts["remedy"],
    )


def _token(message: dict[str, Any] | None) -> str | None:
    return str(message["token"]) if message and "token" in message else None


def _asked(state_dir: Path) -> Path:
    return state_dir / "job.reload"


def _answered(state_dir: Path) -> Path:
    return state_dir / "job.reloaded"
