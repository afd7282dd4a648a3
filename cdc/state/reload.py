"""How the running job is told that its configuration changed, and how it answers.

Who asks writes ``<state_dir>/job.reload`` with a token of its own; the job, which reads the
configuration's file again then, writes ``job.reloaded`` with that token and what went wrong, if
anything did. What was asked while the job was down it finds at its start.
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
    """Ask the job to read its configuration again; the token of the asking."""
    token = secrets.token_hex(8)
    state_dir.mkdir(parents=True, exist_ok=True)
    write_private(_asked(state_dir), json.dumps({"token": token}))
    return token


def pending(state_dir: Path) -> str | None:
    """The token that the job has not answered yet; of several askings the newest."""
    token = _token(read_json(_asked(state_dir)))
    return None if token == _token(read_json(_answered(state_dir))) else token


def done(state_dir: Path, token: str, error: CdcError | None = None) -> None:
    """The job's answer: it runs with the configuration as it was read after the asking."""
    write_private(_answered(state_dir), json.dumps({"token": token, "error": _facts(error)}))


def await_done(state_dir: Path, token: str, timeout: float) -> None:
    """Wait for the answer. Raises the job's error, TIMEOUT after so many seconds without one."""
    answer = poll(
        lambda: read_json(_answered(state_dir)),
        lambda answer: _token(answer) == token,
        every=LOOK_SECONDS,
        seconds=timeout,
    )
    if answer is None:
        raise CdcError(
            ErrorKind.TIMEOUT,
            f"the job did not take the configuration over within {timeout:g} s",
            remedy="wal2lake status; it does so as soon as it can",
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
        f"the job did not take the configuration over: {facts['message']}",
        detail=facts["detail"],
        remedy=facts["remedy"],
    )


def _token(said: dict[str, Any] | None) -> str | None:
    return str(said["token"]) if said and "token" in said else None


def _asked(state_dir: Path) -> Path:
    return state_dir / "job.reload"


def _answered(state_dir: Path) -> Path:
    return state_dir / "job.reloaded"
