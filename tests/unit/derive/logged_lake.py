"""A lake of one captured table with a log, whose cuts histories are brought to."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from cdc.apply.local.arrow import table_of
from cdc.derive.definition.definition import Definition
from cdc.derive.keep.derived_tables import DerivedTables
from cdc.derive.keep.histories import Histories, LoggedTables
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.lake.table.positions import KEY_PROPERTY
from cdc.lake.table.store import MODE_PROPERTY
from cdc.state.derived_requests import pauses, rebuilds
from tests.events.recorded import PREFIX
from tests.events.source import TABLE
from tests.unit.derive.log.logged import (
    PLACEHOLDER,
    TOASTY,
    LoggedSource,
    landed,
    schemas,
    whole,
)
from tests.unit.derive.small_lake import SmallLake


@dataclass
class LoggedLake(SmallLake):
    """Makes a lake of one captured table, with its source and its log."""

    source: LoggedSource = field(default_factory=LoggedSource)
    logged: int = 0
    state: str = "streaming"

    def commit(self) -> None:
        """End the source's transaction, and bring log and table there."""
        self.source.commit()
        self.land()

    def land(self) -> None:
        """Bring log and table to the source's last transaction."""
        self.land_log()
        values = [whole(one) or [] for one in self.source.rows.values()]
        offsets = pa.array([1] * len(values), pa.int64())
        path, rows = self.path(TABLE), table_of(TOASTY, values, {"_cdc_offset": offsets})
        write_deltalake(path, rows, mode="overwrite")
        if not DeltaTable(path).version():
            own = {KEY_PROPERTY: '["id"]', MODE_PROPERTY: "keyed"}
            DeltaTable(path).alter.set_table_properties(own, raise_if_not_exists=False)

    def land_log(self) -> None:
        """Bring the log to the source's last transaction."""
        landed(self.folder / "log", self.source.records[self.logged :])
        self.logged = len(self.source.records)

    def row(self) -> LedgerRow:
        row, place = super().row(), self.source.place
        entry = TableEntry(
            table=str(TABLE),
            path=self.path(TABLE),
            version=DeltaTable(self.path(TABLE)).version(),
            offset=place.offset,
            state=self.state,
        )
        lsn = self.source.happened[-1].lsn
        return replace(row, tables=(entry,), lsn=lsn, marker_offset=place.marker_offset)

    def derived(self, *definitions: Definition, last: Sequence[DerivedEntry] = ()) -> DerivedTables:
        log = LoggedTables(
            path=f"{self.folder}/log",
            prefix=PREFIX,
            placeholder=PLACEHOLDER,
            schemas_of=schemas,
            readings_of=lambda _: [],
        )
        return DerivedTables(
            definitions,
            self.path,
            self.limits(),
            last=last,
            rebuilds=rebuilds(self.folder),
            pauses=pauses(self.folder),
            seconds=60,
            histories=Histories(log),
        )
