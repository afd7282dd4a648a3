"""Defines the interface of an embedded server, as the supervisor uses it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from cdc.stack.process.process import Command
from cdc.state.endpoints import properties_value

LOOPBACK = "127.0.0.1"


class Server(Protocol):
    """Describes a server: prepared, started by its command, ready when its own API says so."""

    @property
    def name(self) -> str:
        """Return the name of the server's process, log file and record."""

    def prepare(self) -> None:
        """Write the server's files, and initialise its data once. Called before every start."""

    def command(self) -> Command:
        """Return how to start and stop the process."""

    def is_ready(self) -> bool:
        """Ask the server's API; return False for any wrong answer, never raise."""


def properties_text(values: Mapping[str, str | int]) -> str:
    """Return the text of a Java properties file."""
    return "".join(f"{key}={properties_value(str(value))}\n" for key, value in values.items())


def write_properties(path: Path, values: Mapping[str, str | int]) -> None:
    """Write a Java properties file that holds no secret."""
    path.write_text(properties_text(values))
