"""Read what the log says of late rows at a cut: the watermark, and what was counted."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cdc.derive.definition.file_names import late_of
from cdc.derive.engine.input import Input
from cdc.derive.step.mark import mark_facts
from cdc.errors import CdcError
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import LedgerRow
from cdc.tables import TableId

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """Sums up the lateness of a derived table's rows at a cut."""

    watermark: str | None  # ISO, UTC: up to where windows are final; None before a row says so
    late: int  # events of rows whose windows were over
    future: int  # rows from too far in the future to move the watermark
    no_time: int  # rows that are in no window

    def __str__(self) -> str:
        """Return it in one line."""
        counts = f"{self.late:,} late, {self.future:,} future, {self.no_time:,} without time"
        return f"watermark {self.watermark or 'none yet'}, {counts}"


def lateness_at(row: LedgerRow) -> dict[str, Lateness]:
    """Return the lateness of each table of the cut that has a rule for it, by its name."""
    found = {}
    for entry in row.derived:
        rows_entry = row.derived_entry(str(late_of(TableId.parse(entry.table))))
        facts = {} if rows_entry is None else _facts(rows_entry)
        if facts.get("late"):
            found[entry.table] = _lateness(facts["late"])
    return found


def _facts(entry: DerivedEntry) -> dict[str, Any]:
    if entry.version < 0:
        return {}
    try:
        return mark_facts(Input.of(entry).open())
    except CdcError:
        return {}  # the version is gone, and with it what it said


def _lateness(late: Mapping[str, Any]) -> Lateness:
    micros, seen = late["watermark"], late["seen"]
    return Lateness(
        watermark=None if micros is None else f"{_EPOCH + timedelta(microseconds=micros)}",
        late=seen["late"],
        future=seen["future"],
        no_time=seen["no_time"],
    )
