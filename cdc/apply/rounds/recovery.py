"""Recovers the state of the lake at the start, and brings tables that are behind up to date.

Nothing is stored elsewhere: the log's newest commit says what has landed, each table's newest
commit what is applied, the ledger's newest row where the last cut lies. A table behind that cut
(new, deleted, or stopped before) is replayed from the log before the first round.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cdc.apply.epoch_log import EpochLog
from cdc.apply.local_replay import replayed_here
from cdc.apply.log_replay import do_nothing, replay
from cdc.apply.rounds.applied_tables import AppliedTables
from cdc.apply.rounds.last_cut import LastCut, Topics, last_cut
from cdc.apply.rounds.table_freezer import TableFreezer
from cdc.apply.table.applied_table import AppliedTable
from cdc.lake.layout import lake_of
from cdc.lake.records.base import base_of
from cdc.lake.records.epochs import Epoch
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.table import positions
from cdc.lake.table.positions import LandedPosition
from cdc.lake.upkeep.held import held
from cdc.land import landing as landed_values
from cdc.land.landing import Landing
from cdc.land.read_back import landings_beyond, last_offset


def last_cut_at_start(
    log_path: str,
    newest: LedgerRow | None,
    epoch: Epoch | None,
    *,
    topics: Topics,
    tables: Mapping[str, AppliedTable],
) -> LastCut:
    """Return where the next cut begins; ``newest`` is the ledger's row, None before the first.

    ``epoch`` is the lake's newest. A table that the cut lacks begins with its events that landed
    after the cut: the last one before is searched in the log.
    """
    row = base_of(newest, epoch)
    missing = [t for t, table in tables.items() if row.entry(str(table.schema.table)) is None]
    landed = positions.landed_position(log_path) if missing else None
    before = {
        topic: max(
            _last(log_path, landed, topic, row.landing_floor),
            _left(epoch, topic),
            _expired(landed, topic),
        )
        for topic in missing
    }
    return last_cut(row, topics, tables, before)


def unpublished_landings(log_path: str, last: LastCut) -> list[Landing]:
    """Return the landings that are not wholly inside the cut."""
    floor = last.row.landing_floor
    later = landings_beyond(log_path, floor)
    wholly_inside = landed_values.floor(later, last.offsets, floor)
    return [landing for landing in later if landing.number > wholly_inside]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Brings tables that are behind to the last cut, by replaying the log."""

    log: EpochLog
    tables: AppliedTables
    freezer: TableFreezer
    last_cut: Callable[[], LastCut]

    def catch_up(self, step: Callable[[], None] = do_nothing) -> None:
        """Bring every table that follows to the last cut; call ``step`` after each batch."""
        self._bring(list(self.tables.by_topic), step)

    def resume(self) -> None:
        """Bring tables that may follow again to the last cut.

        These are tables that an operation has given back, and stopped tables whose structure has a
        new note in the cut (their key was restored, for example). A table that still cannot go on
        stops again for the same reason. A table that waits to be read stays stopped: the log does
        not have what it missed.
        """
        noted = [topic for topic in self.tables.take_noted() if self._is_read(topic)]
        for topic in noted:
            self.tables.by_topic[topic].resume()
        if topics := [*noted, *self.freezer.between_rounds()]:
            self._bring(topics, do_nothing)

    def _is_read(self, topic: str) -> bool:
        """Return whether the table was complete at some moment of the current epoch."""
        position = self.tables.by_topic[topic].position
        return position.epoch >= self.last_cut().row.epoch and position.reading >= 0

    def _bring(self, topics: Sequence[str], step: Callable[[], None]) -> None:
        with held(lake_of(self.log.path), by_job=True):
            last, log = self.last_cut(), self.log.newest()
            notes = log.notes_in(last)
            for topic in topics:
                table, upto = self.tables.by_topic[topic], last.offsets[topic]
                if table.following and (table.position.offset < upto or table.pending_notes(notes)):
                    if not replayed_here(log, topic, last, notes, table):
                        replay(log.recorded(topic, last, notes), table, step)
                    step()


def _expired(landed: LandedPosition | None, topic: str) -> int:
    """Return the last offset of the topic that may have expired from the log; -1 for none."""
    return landed.expired.get(topic, positions.NOTHING)[1] if landed else -1


def _left(epoch: Epoch | None, topic: str) -> int:
    """Return the last offset of the topic that the epoch has skipped; -1 for none."""
    return -1 if epoch is None else epoch.left_behind_in(topic)


def _last(log_path: str, landed: LandedPosition | None, topic: str, floor: int) -> int:
    """Return the last offset of the topic in landings up to ``floor``; -1 for none.

    The log is not searched for a topic from which nothing has landed.
    """
    if landed is None or topic not in landed.offsets:
        return -1
    return last_offset(log_path, topic, floor)
