"""Reduces changes to one row per key by offset, as ``cdc.apply.changes.reduce`` does by Spark."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cdc.apply.changes.reasons import AFTER_REFUSED
from cdc.apply.changes.unchanged import maybe_unchanged
from cdc.apply.local.change import FULL, Change, Key
from cdc.events.schema import TableSchema
from cdc.lake.table.merge_plan import BY_OPERATION


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Counts of a batch's changes; see ``cdc.apply.changes.reduce.overview``."""

    events: int
    refused: int
    keeps: int  # with an unchanged value
    moves: int  # the creates among them
    last_truncate: int | None  # offset
    by_operation: dict[str, int]


def overview(changes: Sequence[Change]) -> Overview:
    """Count the changes."""
    good = [change for change in changes if change.reason is None]
    kept = [change for change in good if change.keep]
    ops = [change.op for change in good]
    return Overview(
        events=len(changes),
        refused=len(changes) - len(good),
        keeps=len(kept),
        moves=sum(change.op == "c" for change in kept),
        last_truncate=max((c.offset for c in good if c.op == "t"), default=None),
        by_operation={name: ops.count(op) for name, op in BY_OPERATION.items()},
    )


@dataclass(slots=True)
class Seen:
    """Holds the latest values that the batch has of one key, up to some event.

    ``known`` is value and offset where each column was last sent; ``full`` and ``refused`` are the
    offsets of the last full row and of the last refused event, -1 if there was none.
    """

    full: int = -1
    refused: int = -1
    known: dict[int, tuple[Any, int]] = field(default_factory=dict)

    @property
    def since(self) -> int:
        """Events before this offset do not count for the row; -1 if all of the batch do."""
        return max(self.full, self.refused + 1 if self.refused >= 0 else -1)

    def take(self, change: Change, marked: Iterable[int]) -> None:
        """Go on to the key's next event."""
        if change.reason is not None:
            self.refused = change.offset
        elif change.applies:
            for number in marked:
                if number not in change.keep:
                    self.known[number] = (change.values[number], change.offset)
            if change.op in FULL:
                self.full = change.offset

    def value(self, number: int) -> tuple[Any] | None:
        """Return the column's value in a tuple; None if the batch does not have it."""
        found = self.known.get(number)
        return None if found is None or found[1] < self.since else (found[0],)


def latest_per_key(
    changes: Iterable[Change], schema: TableSchema, *, carry: bool
) -> dict[Key, Change]:
    """Return the last change of each key that was not refused, with its row as of then.

    With ``carry`` (needed if ``overview`` counts keeps) a value marked as unchanged is taken from
    an older event of the batch, back to the last full row of the key and not across a refused
    event. Only the row in the lake can supply the columns that remain in ``keep``. A change with a
    ``reason`` cannot be built.
    """
    if not carry:
        return {c.key: c for c in changes if c.applies and c.key is not None}
    marked = maybe_unchanged(schema)
    seen: dict[Key, Seen] = {}
    latest: dict[Key, Change] = {}
    for change in changes:
        if change.key is None:
            continue
        of_key = seen.setdefault(change.key, Seen())
        of_key.take(change, marked)
        if change.applies:
            latest[change.key] = _resolved(change, of_key) if change.keep else change
    return latest


def _resolved(change: Change, seen: Seen) -> Change:
    values, missing = list(change.values), []
    for number in change.keep:
        found = seen.value(number)
        if found is None:
            missing.append(number)
        else:
            values[number] = found[0]
    reason = AFTER_REFUSED if missing and seen.since >= 0 else None
    return replace(change, values=values, keep=tuple(missing), reason=reason)
