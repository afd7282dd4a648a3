"""What the supervisor knows of an embedded server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from cdc.stack.process.process import Command
from cdc.state.endpoints import properties_value

LOOPBACK = "127.0.0.1"


class Server(Protocol):
    """Prepared, started by its command, ready when its own API says so."""

    @property
    def name(self) -> str: ...

    def prepare(self) -> None:
        """Write its files; initialise its data once. Called before every start."""

    def command(self) -> Command: ...

    def is_ready(self) -> bool:
        """Ask its API; False for any answer but the right one, never an exception."""


def write_properties(path: Path, values: Mapping[str, str | int]) -> None:
    lines = [f"{key}={properties_value(str(value))}\n" for key, value in values.items()]
    path.write_text("".join(lines))
