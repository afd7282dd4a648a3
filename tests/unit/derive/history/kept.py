"""A history that is brought to cuts of a source, without the rest of the job."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from cdc.apply.local.arrow import table_of
from cdc.derive.definition.definition import Definition
from cdc.derive.history.history import History
from cdc.derive.history_step.bringing import HistoryStep
from cdc.derive.history_step.reach import Kept, Reach
from cdc.derive.log.event import Place
from cdc.derive.log.topic_rows import TopicRows
from cdc.derive.step.limits import Limits
from cdc.derive.step.mark import Mark
from cdc.derive.step.ready import Step
from cdc.derive.step.writer import TableWriter
from cdc.events.schema import TableSchema
from cdc.lake.records.readings import Reading
from cdc.lake.table.merge_plan import DELETED
from cdc.lake.table.positions import Position
from cdc.tables import TableId
from tests.events.source import TABLE, TOPIC, Row
from tests.unit.derive.log.logged import (
    MARKERS,
    NOON,
    TOASTY,
    LoggedSource,
    reader,
    recent,
    whole,
)
from tests.unit.derive.small_lake import defined

HistoryRow = tuple[Any, ...]


def history(*track: str) -> Definition:
    return defined(
        "past",
        "",
        str(TABLE),
        hash=f"history {track}",
        history=History(track=track),
        table=TableId("marts", "past"),
    )


@dataclass
class KeptHistory:
    """A history in a folder; ``most`` events are taken at once."""

    folder: Path
    definition: Definition
    source: LoggedSource = field(default_factory=LoggedSource)
    schema: TableSchema = TOASTY
    most: int = 1000
    readings: list[Reading] = field(default_factory=list)
    at: Reach | None = None
    cut: int = 0
    epoch: int = 1
    kept: Kept | None = None
    name: str = "past"
    wanted: frozenset[str] = frozenset()
    numbers: dict[str, int] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.name}"

    def bring(self, *, anew: bool = False, upto: Place | None = None, forget: bool = False) -> Step:
        """Bring it to where the source is."""
        self.cut += 1
        reading = self.readings[-1].number if self.readings else 0
        upto = upto or replace(self.source.place, reading=reading, epoch=self.epoch)
        lsns = [one.lsn for one in self.source.happened if one.offset <= upto.offset]
        rows = TopicRows(
            path="/nowhere",
            recent=recent(self.source.records, {TOPIC: -1, MARKERS: -1}),
            most=self.most,
        )
        step, self.at = HistoryStep(
            definition=self.definition,
            schema=self.schema,
            writer=TableWriter(self.path, self.folder / "index"),
            mark=Mark(
                definition=self.definition.hash,
                cut=self.cut,
                epoch=upto.epoch,
                lsn=max([*lsns, *(one.lsn for one in self.readings)], default=None),
            ),
            upto=upto,
            log=replace(reader(rows, self.readings), wanted=self.wanted),
            kept=lambda: self.kept or Kept(offset=-1, marker_offset=-1, readings=self.readings),
            now=self.now,
            limits=Limits(
                memory_mb=256, full_rows=1, kept_hours=1, scratch=self.folder / "scratch"
            ),
            numbers=self.numbers,
        ).bring(since=None if forget else self.at, anew=anew)
        return step

    def read(
        self, rows: Sequence[Row], *, is_whole: bool = True, deleted: Sequence[int] = ()
    ) -> None:
        """Note a reading of the source at this moment; a difference has deleted keys too."""
        number = len(self.readings) + 1
        path = f"{self.path}-reading-{number}"
        values = [whole(row, self.schema) for row in rows]
        gone = [{**dict.fromkeys(self.schema.names), "id": key} for key in deleted]
        values += [whole(row, self.schema) for row in gone]
        flags = pa.array([False] * len(rows) + [True] * len(gone), pa.bool_())
        own = {} if is_whole else {DELETED: flags}
        write_deltalake(path, table_of(self.schema, [v for v in values if v], own))
        self.readings.append(
            Reading(
                number=number,
                table=str(self.schema.table),
                whole=is_whole,
                path=path,
                version=0,
                position=Position(epoch=self.epoch, offset=self.source.offset - 1, reading=number),
                lsn=self.source.lsn - 60,
                cut=self.cut,
                landing=1,
                operation="",
                made_at=NOON,
            )
        )

    def now(self) -> Reading:
        """Return the table as it is, as a reading that is not kept."""
        self.read(list(self.source.rows.values()))
        return replace(self.readings.pop(), number=-1, lsn=self.source.lsn - 100)

    def rows(self, *names: str) -> list[HistoryRow]:
        """Return the versions of now and before, in a fixed order; all columns by default."""
        table = DeltaTable(self.path)
        every = [f.name for f in table.schema().fields if not f.name.startswith("_cdc_")]
        listed = ", ".join(f'"{name}"' for name in names or every)
        query = f'SELECT {listed} FROM t ORDER BY "_epoch", "_from_lsn", "id"'
        found = QueryBuilder().register("t", table).execute(query).read_all()
        return [tuple(row.values()) for row in pa.table(found).to_pylist()]

    def at_lsn(self, lsn: int) -> dict[int, HistoryRow]:
        """Return the rows of the table at an LSN, by key."""
        found = {}
        for row in self.rows(*self.schema.names, "_from_lsn", "_to_lsn"):
            *values, begin, end = row
            if begin <= lsn and (end is None or end > lsn):
                assert values[0] not in found
                found[values[0]] = tuple(values)
        return found
