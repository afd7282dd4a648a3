"""Takes events and readings into the versions of a history, one after the other."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from cdc.derive.history.history import END_OF_EPOCH, EPOCH
from cdc.derive.history.versions import Moment, Versions, moment_of, parted
from cdc.derive.history_step.reach import Reach
from cdc.derive.history_step.reading import Beginning, take_reading
from cdc.derive.history_step.store import VersionStore, end
from cdc.derive.log.event import Place, RowEvent
from cdc.lake.records.readings import Reading


class Taking:
    """Takes events and readings in one step; afterwards the store has the versions."""

    def __init__(self, store: VersionStore, track: tuple[str, ...], reach: Reach) -> None:
        """Begin behind ``reach``, which ``store`` is at."""
        self._store, self._track, self._reach = store, track, reach
        names = store.schema.names
        self._numbers = [number for number, name in enumerate(names) if name in (track or names)]
        self._epoch = reach.upto.epoch
        self._last = Moment(reach.lsn or 0, clock=_time(reach.latest))
        self._since = reach.since_lsn
        self._is_unsure = False  # whether events without an END came last

    def begin(self, reading: Reading) -> None:
        """Take the reading that the history begins with: what was before it is not known."""
        self._read(reading, is_first=True)

    def take(self, some: Sequence[RowEvent] | Reading) -> None:
        """Go on by a reading, or by some events."""
        if isinstance(some, Reading):
            self._read(some)
            return
        for events in parted(some):
            if events[0].op == "t" and events[0].reason is None:
                self._last = moment_of(events[0], self._last)
                self._store.end_all(self._last, self._epoch)
            else:
                self._apply(events)
            self._note_since(events)

    def reached(self, upto: Place, lsn: int | None) -> Reach:
        """Return how far the history is, at a cut of this LSN."""
        since = lsn if self._since is None or self._is_unsure else self._since
        latest = None if self._last.clock is None else self._last.clock.isoformat()
        return replace(self._reach, since_lsn=since, upto=upto, lsn=lsn, latest=latest)

    def _read(self, reading: Reading, *, is_first: bool = False) -> None:
        epoch, at = reading.position.epoch, Moment(reading.lsn, clock=self._last.clock)
        after, since = (epoch, reading.lsn), 0 if is_first else reading.lsn
        if epoch != self._epoch:
            # LSNs of two epochs cannot be compared: no version reaches from one into the other.
            after, since = (self._epoch, END_OF_EPOCH), 0
            self._end_epoch()
            self._epoch = epoch
        begin = Beginning(at=at, epoch=epoch, since=since, after=after)
        take_reading(self._store, reading, self._track, begin)
        self._last = at
        self._since = reading.lsn if self._since is None else self._since

    def _end_epoch(self) -> None:
        last = Moment(END_OF_EPOCH, clock=self._last.clock)
        self._store.load_all()
        end(self._store.database, f"v.{EPOCH} = {self._epoch:d}", last, self._epoch)

    def _apply(self, events: Sequence[RowEvent]) -> None:
        keys = {event.key for event in events if event.key is not None}
        ended = self._store.of(keys, self._last)
        versions = Versions(
            tracked=self._numbers,
            epoch=self._epoch,
            last=self._last,
            current=self._store.of(keys, None),
            ended=ended,
        )
        for event in events:
            versions.take(event)
        self._store.replace(versions.all(), self._last)
        self._last = versions.last

    def _note_since(self, events: Sequence[RowEvent]) -> None:
        """Remember the first LSN from which on all versions have their own."""
        for event in events:
            if event.lsn is None:
                self._is_unsure = True
            elif self._is_unsure or self._since is None:
                self._since, self._is_unsure = event.lsn, False


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
