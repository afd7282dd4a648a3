"""Whether the first snapshot has wholly landed: no transaction counts its rows.

The landing query takes a share of every topic, so the END of a later transaction may land long
before the last rows of a large table. But the connector writes the whole snapshot before the
first END: what the topics hold when some END has landed, holds all of it.
"""

from collections.abc import Callable, Mapping

import structlog

from cdc.errors import CdcError, ErrorKind

Offsets = Mapping[str, int]
"""By topic; exclusive."""
logger = structlog.get_logger(__name__)


class FirstSnapshot:
    """To be asked only when an END marker has landed."""

    def __init__(self, ends: Callable[[], Offsets]) -> None:
        """``ends`` gives how far the topics reach now."""
        self._ask = ends
        self.read: Callable[[], Offsets] = dict
        """Gives up to where they have landed: of the landing query, once it runs."""
        self._ends: Offsets | None = None
        self._by: int | None = None

    def landed_by(self, newest: Callable[[], int]) -> int | None:
        """A landing up to which all of it has landed; None while that is not known.

        ``newest`` gives the number of the newest landing.
        """
        if self._by is None and self._landed():
            self._by = newest()
        return self._by

    def _landed(self) -> bool:
        """Whether all has that there was when this was asked first."""
        if self._ends is None:
            self._ends = self._asked()
        if self._ends is None:
            return False
        read = self.read()
        return all(read.get(topic, 0) >= end for topic, end in self._ends.items())

    def _asked(self) -> Offsets | None:
        """None where no broker answers: the landing query outlives that too."""
        try:
            return self._ask()
        except CdcError as error:
            if error.kind is not ErrorKind.UNREACHABLE:
                raise
            logger.warning("it is not known yet how far the topics reach", error=str(error))
            return None
