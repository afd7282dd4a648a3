"""The state directory: what of the embedded stack lies where, and its secrets."""

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdc.state.atomic_file import write_private

_PRIVATE_DIRECTORY = 0o700


@dataclass(frozen=True, slots=True)
class StateDir:
    """Everything below one directory, private to the user that runs wal2lake."""

    root: Path

    def create(self) -> None:
        for directory in (self.run, self.logs, self.secrets, self.requests, self.root / "data"):
            directory.mkdir(parents=True, exist_ok=True)
        for directory in (self.root, self.secrets):
            directory.chmod(_PRIVATE_DIRECTORY)

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def secrets(self) -> Path:
        return self.root / "secrets"

    @property
    def requests(self) -> Path:
        return self.root / "requests"

    @property
    def endpoints_file(self) -> Path:
        return self.root / "endpoints.json"

    @property
    def stack_file(self) -> Path:
        return self.root / "stack.json"

    @property
    def reserve_file(self) -> Path:
        """Room that the supervisor's report is given when the disk is full."""
        return self.root / "reserve"

    @property
    def job_file(self) -> Path:
        """Written by the job."""
        return self.root / "job.json"

    def data(self, server: str) -> Path:
        return self.root / "data" / server

    def log(self, process: str) -> Path:
        return self.logs / f"{process}.log"

    def secret(self, name: str) -> str:
        """A random one, made at the first call and kept."""
        known = self.known_secret(name)
        if known is not None:
            return known
        self.secrets.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_DIRECTORY)
        made = secrets.token_urlsafe(24)
        write_private(self.secrets / name, made)
        return made

    def known_secret(self, name: str) -> str | None:
        """One that was made before."""
        try:
            return (self.secrets / name).read_text()
        except FileNotFoundError:
            return None


def read_json(path: Path) -> dict[str, Any] | None:
    """None when there is none, or none that is whole."""
    try:
        value = json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return value if isinstance(value, dict) else None
