"""The first snapshot is in the lake before any transaction of the stream: no transaction counts it.

The landing query takes a share of every topic, so the END of a later transaction may land long
before the last rows of a large table. But the connector writes the whole snapshot before the
first END: what the topics hold when some END has landed, holds all of it. Until all that is
applied, no END is heeded, and topics that the stream has reached wait.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import structlog

from cdc.apply.rounds.log_slice import Slice
from cdc.errors import CdcError, ErrorKind
from cdc.land.landing import Landing

Offsets = Mapping[str, int]
"""By topic; exclusive."""
logger = structlog.get_logger(__name__)


class FirstSnapshot:
    """What is known of it; used by the thread of the rounds."""

    def __init__(
        self,
        ends: Callable[[], Offsets],
        landed: Callable[[], Offsets],
        *,
        marker_topic: str,
        applied: bool,
    ) -> None:
        """``ends`` gives how far the topics reach now, ``landed`` how far they have landed.

        ``applied``: whether all of the snapshot is in the last cut.
        """
        self._ask = ends
        self._read = landed
        self._marker_topic = marker_topic
        self.applied = applied
        self._ends: Offsets | None = None
        self._by: int | None = None
        self.held: set[str] = set()
        """Topics of which nothing can be applied before."""

    def landed_by(self, newest: Callable[[], int]) -> int | None:
        """A landing up to which all of it has landed; None while that is not known.

        ``newest`` gives the number of the newest landing.
        """
        if self._by is None and self._marker_topic in self.held and self._landed():
            self._by = newest()
        return self._by

    def open(self, applied: Mapping[str, int]) -> dict[str, int]:
        """The applied offsets, without the topics that wait."""
        return {topic: last for topic, last in applied.items() if topic not in self.held}

    def look(self, by: int | None, left: Sequence[Landing]) -> None:
        """``left`` is what is not applied of the open topics; ``by`` is of ``landed_by``."""
        if by is not None and all(landing.number > by for landing in left):
            self._end()

    def held_back(self, part: Slice, is_applied: Callable[[str, int], bool]) -> Slice:
        """The slice without what has to wait.

        ``is_applied`` tells whether a table has the event at an offset of its topic. One of the
        stream it has from a cut that was begun after the snapshot was applied, and not published.
        """
        if self.applied:
            return part
        reached = {t: min(s.first for s in spans.values()) for t, spans in part.spans.items()}
        if any(is_applied(topic, offset) for topic, offset in reached.items()):
            self._end()
            return part
        self.held |= set(reached)
        if part.ends:
            self.held.add(self._marker_topic)
        return replace(part, ends=[])

    def _end(self) -> None:
        self.applied = True
        self.held.clear()

    def _landed(self) -> bool:
        """Whether all has that there was when this was asked first."""
        if self._ends is None:
            self._ends = self._asked()
        if self._ends is None:
            return False
        read = self._read()
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
