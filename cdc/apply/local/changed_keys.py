"""Completes the second half of a key change, as ``cdc.apply.changes.changed_keys`` does by Spark.

For one update of a key the connector sends a delete of the old key and then a create of the new
one, neither with the large values that did not change. These are taken from the batch's events of
the old key, or from its row in the lake.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from cdc.apply.changes.reasons import NO_OLD_ROW
from cdc.apply.changes.unchanged import maybe_unchanged
from cdc.apply.local.change import Change, Key
from cdc.apply.local.lake_rows import LakeRows
from cdc.apply.local.reduce import Seen
from cdc.events.schema import TableSchema

_Known = dict[int, tuple[Any]]
"""Values by column; a tuple, so that a known null differs from an unknown value."""


def resolve(changes: Sequence[Change], lake: LakeRows, schema: TableSchema) -> list[Change]:
    """Return the changes, in order of their offsets, with every create completed.

    A create that cannot be completed gets a reason. ``lake`` is the table before these changes.
    """
    halves = _halves(changes)
    gone = {delete.offset: delete.key for _, delete in halves if delete and delete.key}
    before = _before(changes, gone, maybe_unchanged(schema))
    old = _old_rows(before, gone, lake, maybe_unchanged(schema))
    found: dict[int, _Known] = {}
    for create, delete in halves:
        found[create.offset] = {}
        if delete is not None and delete.offset in before:
            seen = before[delete.offset]
            known = _known(seen, old.get(gone[delete.offset]), maybe_unchanged(schema))
            source = found.get(seen.full, {}) if seen.since == seen.full else {}
            found[create.offset] = {**source, **known}
    return [_filled(c, found[c.offset]) if c.offset in found else c for c in changes]


def _halves(changes: Sequence[Change]) -> list[tuple[Change, Change | None]]:
    """Creates with missing values, each with the delete directly before it."""
    nothing = Change(-1, None, ())
    return [
        (change, before if before.op == "d" else None)
        for before, change in pairwise([nothing, *changes])
        if change.op == "c" and change.keep and change.reason is None
    ]


def _before(
    changes: Sequence[Change], gone: Mapping[int, Key], marked: Sequence[int]
) -> dict[int, Seen]:
    """Return what the batch had of each key just before its delete, by the offset of the delete."""
    seen = {key: Seen() for key in gone.values()}
    before = {}
    for change in changes:
        of_key = None if change.key is None else seen.get(change.key)
        if of_key is None:
            continue
        if change.offset in gone and change.reason is None:
            before[change.offset] = Seen(of_key.full, of_key.refused, dict(of_key.known))
        of_key.take(change, marked)
    return before


def _old_rows(
    before: Mapping[int, Seen], gone: Mapping[int, Key], lake: LakeRows, marked: Sequence[int]
) -> Mapping[Key, Sequence[Any]]:
    keys = {gone[offset] for offset, seen in before.items() if seen.since < 0}
    return lake.rows(keys, marked) if keys else {}


def _known(seen: Seen, old: Sequence[Any] | None, marked: Sequence[int]) -> _Known:
    known: _Known = {}
    for place, number in enumerate(marked):
        found = seen.value(number)
        if found is not None:
            known[number] = found
        elif seen.since < 0 and old is not None:
            known[number] = (old[place],)
    return known


def _filled(create: Change, known: _Known) -> Change:
    values = list(create.values)
    for number in create.keep:
        if number in known:
            values[number] = known[number][0]
    lost = any(number not in known for number in create.keep)
    return replace(create, values=values, keep=(), reason=NO_OLD_ROW if lost else None)
