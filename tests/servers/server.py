"""The interface of a real server for tests, however it runs."""

from typing import Protocol


class Server(Protocol):
    """Starts and ends a real server.

    None of its methods leaves a process behind. A second ``start`` after ``stop`` or ``kill`` finds
    the data of the first, which tests of restarts need.
    """

    @property
    def name(self) -> str:
        """Return the name of the server."""

    @property
    def address(self) -> str:
        """Return the address for clients, known before ``start``."""

    def start(self) -> str:
        """Start the server, wait until it answers, and return its address."""

    def stop(self) -> None:
        """Stop the server in an orderly way, if it runs, and wait for its end."""

    def kill(self) -> None:
        """End the server like a crash, if it runs, and wait for its end."""
