"""Define the layout of the state directory, and keep its secrets."""

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdc.state.atomic_file import write_private

_PRIVATE_DIRECTORY = 0o700


@dataclass(frozen=True, slots=True)
class StateDir:
    """Keeps the files of one installation, private to the user that runs wal2lake."""

    root: Path

    def create(self) -> None:
        """Create the directories that are missing, and make the private ones private."""
        for directory in (self.run, self.logs, self.secrets, self.requests, self.root / "data"):
            directory.mkdir(parents=True, exist_ok=True)
        for directory in (self.root, self.secrets):
            directory.chmod(_PRIVATE_DIRECTORY)

    @property
    def run(self) -> Path:
        """Return the directory of the records and locks of the running processes."""
        return self.root / "run"

    @property
    def logs(self) -> Path:
        """Return the directory of the log files, one for each process."""
        return self.root / "logs"

    @property
    def secrets(self) -> Path:
        """Return the directory of passwords, and of files that contain them."""
        return self.root / "secrets"

    @property
    def requests(self) -> Path:
        """Return the directory of the requests to the job: see cdc/state/requests.py."""
        return self.root / "requests"

    @property
    def endpoints_file(self) -> Path:
        """Return the file of the running stack's addresses: see cdc/state/endpoints.py."""
        return self.root / "endpoints.json"

    @property
    def stack_file(self) -> Path:
        """Return the file of the supervisor's report: see cdc/stack/process/stack_report.py."""
        return self.root / "stack.json"

    @property
    def reserve_file(self) -> Path:
        """Return the file that reserves space for the supervisor's report when the disk is full."""
        return self.root / "reserve"

    @property
    def job_file(self) -> Path:
        """Return the file of the job's state: see cdc/state/job_state.py."""
        return self.root / "job.json"

    def data(self, server: str) -> Path:
        """Return the data directory of a server."""
        return self.root / "data" / server

    def log(self, process: str) -> Path:
        """Return the log file of a process."""
        return self.logs / f"{process}.log"

    def secret(self, name: str) -> str:
        """Return the secret of this name; the first call makes a random one and stores it."""
        stored = self.known_secret(name)
        if stored is not None:
            return stored
        self.secrets.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_DIRECTORY)
        new = secrets.token_urlsafe(24)
        write_private(self.secrets / name, new)
        return new

    def known_secret(self, name: str) -> str | None:
        """Return the secret if it has been made before, else None."""
        try:
            return (self.secrets / name).read_text()
        except FileNotFoundError:
            return None


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in the file; None if there is no file or it holds no object."""
    try:
        value = json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return value if isinstance(value, dict) else None
