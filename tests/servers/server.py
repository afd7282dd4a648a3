"""The interface of a real server for tests, however it runs."""

from typing import Protocol


class Server(Protocol):
    """A real server.

    None of its methods leaves a process behind. A second ``start`` after ``stop`` or ``kill`` finds
    the data of the first, which tests of restarts need.
    """

    @property
    def name(self) -> str:
        """The name of the server."""

    @property
    def address(self) -> str:
        """The address for clients, known before ``start``."""

    def start(self) -> str:
        """Start the server, wait until it answers, and return its address."""

    def stop(self) -> None:
        """Stop the server in an orderly way, if it runs, and wait for its end."""

    def kill(self) -> None:
        """End the server like a crash, if it runs, and wait for its end."""
