"""What a test may ask of a real server, however it runs."""

from typing import Protocol


class Server(Protocol):
    """One real server.

    ``start`` returns only when the server answers, and gives the address a client uses. A second
    ``start`` after ``stop`` or ``kill`` finds the data of the first: that is what restart tests
    need. ``stop`` ends it in its own orderly way, ``kill`` as a crash would; both return when it is
    gone and neither minds one that is gone already. None of them leaves a process behind.
    """

    @property
    def name(self) -> str: ...

    @property
    def address(self) -> str:
        """What ``start`` returned; known before."""

    def start(self) -> str: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...
