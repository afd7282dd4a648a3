"""Holds the stream back until the first snapshot is applied, since no transaction counts its rows.

The landing query takes a share of every topic, so the END of a later transaction may land long
before the last snapshot rows of a large table. But the connector writes the whole snapshot before
the first END: as soon as some END has landed, the topics hold all of it. Until everything up to
there is applied, every END is ignored, and topics that the stream has reached wait.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import structlog

from cdc.apply.rounds.log_slice import Slice
from cdc.errors import CdcError, ErrorKind
from cdc.land.landing import Landing

Offsets = Mapping[str, int]
"""Exclusive end offsets by topic."""
logger = structlog.get_logger(__name__)


class FirstSnapshot:
    """Tells whether the first snapshot is applied; used by the thread of the rounds."""

    def __init__(
        self,
        ends: Callable[[], Offsets],
        landed: Callable[[], Offsets],
        *,
        marker_topic: str,
        applied: bool,
    ) -> None:
        """``ends`` returns where the topics end now, ``landed`` how far they have landed.

        ``applied``: whether the whole snapshot is in the last cut.
        """
        self._ends_now = ends
        self._landed_now = landed
        self._marker_topic = marker_topic
        self.applied = applied
        self._ends: Offsets | None = None
        self._landed_by: int | None = None
        self.held_topics: set[str] = set()
        """Topics that wait: nothing more of them is applied before the snapshot is."""

    def landed_by(self, newest: Callable[[], int]) -> int | None:
        """Return a landing up to which the whole snapshot has landed; None while that is unknown.

        ``newest`` returns the number of the newest landing.
        """
        if (
            self._landed_by is None
            and self._marker_topic in self.held_topics
            and self._has_landed()
        ):
            self._landed_by = newest()
        return self._landed_by

    def open(self, applied: Mapping[str, int]) -> dict[str, int]:
        """Return the applied offsets without those of topics that wait."""
        return {topic: last for topic, last in applied.items() if topic not in self.held_topics}

    def look(self, landed_by: int | None, waiting: Sequence[Landing]) -> None:
        """Notice that the snapshot is applied, and let all topics go on then.

        ``waiting`` are the landings of open topics that are not applied yet; ``landed_by`` is what
        the method of that name returned before they were listed.
        """
        if landed_by is not None and all(landing.number > landed_by for landing in waiting):
            self._end()

    def held_back(self, part: Slice, is_applied: Callable[[str, int], bool]) -> Slice:
        """Return the slice without its END markers while the snapshot is not applied.

        ``is_applied`` tells whether a table has the event at an offset of its topic. If a table
        has an event of the stream, a round applied it after the snapshot, and crashed before it
        published.
        """
        if self.applied:
            return part
        reached = {
            topic: min(span.first for span in spans.values()) for topic, spans in part.spans.items()
        }
        if any(is_applied(topic, offset) for topic, offset in reached.items()):
            self._end()
            return part
        self.held_topics |= set(reached)
        if part.ends:
            self.held_topics.add(self._marker_topic)
        return replace(part, ends=[])

    def _end(self) -> None:
        self.applied = True
        self.held_topics.clear()

    def _has_landed(self) -> bool:
        """Return whether all has landed that the topics held at the first call."""
        if self._ends is None:
            self._ends = self._read_ends()
        if self._ends is None:
            return False
        landed = self._landed_now()
        return all(landed.get(topic, 0) >= end for topic, end in self._ends.items())

    def _read_ends(self) -> Offsets | None:
        """Return where the topics end; None where no broker answers, which landing survives too."""
        try:
            return self._ends_now()
        except CdcError as error:
            if error.kind is not ErrorKind.UNREACHABLE:
                raise
            logger.warning("the ends of the topics are not known yet", error=str(error))
            return None
