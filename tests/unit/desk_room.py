"""A room for tests of the desk: a state directory, a lake, and operations to ask for."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from cdc.lake.records.operations import Operations
from cdc.operations.desk.desk import Desk, Handler
from cdc.state import operation_files as files
from cdc.state.operation import Operation, OperationState, Progress
from tests.waiting import until

ID = "20261121T000001-0001"
RUNNING = Progress(
    id=ID,
    state=OperationState.RUNNING,
    phase="reading",
    table="shop.orders",
    tables=3,
    tables_done=1,
    chunks=12,
    rows=450_000,
    rows_expected=1_000_000,
    started_at="2026-11-21T00:00:00+00:00",
    counted_from="2026-11-21T00:00:00+00:00",
    updated_at="2026-11-21T00:00:09+00:00",
)


def operation(number: int = 1, command: str = "copy") -> Operation:
    return Operation(
        id=f"20261121T0000{number:02}-{number:04x}",
        command=command,
        tables=(f"a.t{number}",),
        line=f"wal2lake {command} a.t{number}",
        asked_by="ann@host, pid 7",
        asked_at=f"2026-11-21T00:00:{number:02}.000001+00:00",
        options={"mode": "in-place", "where": "id < 3"},
    )


@dataclass
class Room:
    """Holds a state directory, a lake, and the desks started in them."""

    folder: Path
    desks: list[Desk] = field(default_factory=list)

    @property
    def record(self) -> Operations:
        return Operations(str(self.folder / "lake" / "operations"))

    def start(self, **handlers: Handler) -> Desk:
        desk = Desk(self.folder, self.record, handlers)
        self.desks.append(desk)
        desk.start()
        return desk

    def state(self, operation_id: str = ID) -> OperationState:
        return files.progress(self.folder, operation_id).state

    def end(self, operation_id: str = ID) -> Progress:
        until(lambda: self.state(operation_id).ended)
        return files.progress(self.folder, operation_id)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the record as delta-rs reads them, the oldest first."""
        table = DeltaTable(self.record.path).to_pyarrow_table()
        return sorted(table.to_pylist(), key=lambda row: str(row["id"]))
