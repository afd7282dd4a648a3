"""Counts copies of rows of a table without a key, as ``cdc.apply.changes.reduce`` does by Spark."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdc.apply.changes.reasons import TOO_FEW_COPIES
from cdc.apply.local.change import FULL, Change


@dataclass(frozen=True, slots=True)
class Net:
    """Holds the net change in copies of one row, and the offset of its last event."""

    values: Sequence[Any]
    copies: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRow:
    """Holds one copy of a row to add or delete; with a ``reason``, more are deleted than exist."""

    values: Sequence[Any]
    offset: int
    digest: str
    copy: int | None
    deleted: bool
    reason: str | None = None


def net_copies(changes: Iterable[Change], digest: Callable[[Sequence[Any]], str]) -> dict[str, Net]:
    """Return the net change of each distinct row, by its digest; rows without one are left out."""
    counted: dict[str, Net] = {}
    for change in changes:
        if change.reason is None and change.op in FULL:
            name = digest(change.values)
            before = counted.get(name, Net(change.values, 0, -1))
            one = -1 if change.op == "d" else 1
            offset = max(before.offset, change.offset)
            counted[name] = Net(before.values, before.copies + one, offset)
    return {name: net for name, net in counted.items() if net.copies}


def copy_rows(net: Mapping[str, Net], held: Mapping[str, int]) -> list[CopyRow]:
    """Return the copies to add and to delete; they are numbered from 1 without gaps.

    New copies continue the numbering of those that the lake holds, and the last ones are deleted
    first. Not idempotent: each event may be counted only once.
    """
    rows = []
    for digest, change in net.items():
        had = held.get(digest, 0)
        has = had + change.copies
        few = has < 0
        known = range(min(had, has) + 1, max(had, has) + 1)
        numbers: Iterable[int | None] = [None] if few else known
        rows += [
            CopyRow(
                values=change.values,
                offset=change.offset,
                digest=digest,
                copy=number,
                deleted=change.copies < 0,
                reason=TOO_FEW_COPIES if few else None,
            )
            for number in numbers
        ]
    return rows
