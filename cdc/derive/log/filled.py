"""Give events the values that they only mark as unchanged, and the rows before. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cdc.apply.changes.reasons import AFTER_REFUSED, NO_OLD_ROW, NO_ROW_TO_KEEP_FROM
from cdc.apply.local.change import APPLIED, Key
from cdc.derive.log.event import Decoded, Row, RowEvent
from cdc.events.schema import TableSchema
from cdc.tables import TableMode


class RowsBefore(Protocol):
    """Looks up rows as they were before the events that are filled next."""

    def rows(self, keys: Collection[Key]) -> Mapping[Key, Row]:
        """Return the whole rows of these keys; absent rows are left out."""


@dataclass(slots=True)
class _State:
    """Holds the rows of the keys of some events, as of the next one; None for a deleted one."""

    rows: dict[Key, Row | None]
    unsure: set[Key]  # an event of theirs was refused, so older values may be outdated
    gone: Row | None = None  # the row that the event before deleted

    def image(self, key: Key | None) -> Row | None:
        return None if key is None else self.rows.get(key)


def filled(decoded: Sequence[Decoded], schema: TableSchema, before: RowsBefore) -> list[RowEvent]:
    """Return the events of some changes, in their order.

    The two changes of a changed key have to be among them together. ``before`` is asked once, for
    the keys of a table that has one.
    """
    if schema.mode is not TableMode.KEYED:
        return list(_without_key(decoded))
    keys = {one.change.key for one in decoded if one.change.key is not None}
    state = _State(dict(before.rows(keys)), set())
    return [_next(state, one) for one in decoded]


def _next(state: _State, one: Decoded) -> RowEvent:
    change = one.change
    old = state.image(change.key)
    gone, state.gone = state.gone, None
    if change.reason is not None or change.op not in APPLIED:
        return _aside(state, one)
    assert change.key is not None  # noqa: S101 - an event of a keyed table without one is refused
    if change.op == "d":
        state.gone = None if change.key in state.unsure else old
        state.rows[change.key] = None
        state.unsure.discard(change.key)
        return _event(one, before=old)
    source = gone if change.op == "c" else old
    missing = _missing(change.key, one, source, state)
    if missing is not None:
        state.unsure.add(change.key)
        return _event(one, reason=missing)
    after = _row(one, source)
    state.rows[change.key] = after
    if change.op != "u":
        state.unsure.discard(change.key)
    return _event(one, after=after, before=old if change.op == "u" else None)


def _missing(key: Key, one: Decoded, source: Row | None, state: _State) -> str | None:
    """Return why the unchanged values of a row are not known; None if they are."""
    if not one.change.keep:
        return None
    if one.change.op == "u" and key in state.unsure:
        return AFTER_REFUSED
    if source is None:
        return NO_ROW_TO_KEEP_FROM if one.change.op == "u" else NO_OLD_ROW
    return None


def _aside(state: _State, one: Decoded) -> RowEvent:
    """Return an event that is no row: a TRUNCATE, or one that was refused."""
    change = one.change
    if change.reason is not None:
        if change.key is not None:
            state.unsure.add(change.key)
        return _event(one, reason=change.reason)
    if change.op == "t":
        state.rows = dict.fromkeys(state.rows)
        state.unsure.clear()
    return _event(one)


def _row(one: Decoded, source: Row | None) -> Row:
    values = list(one.change.values)
    for number in one.change.keep:
        assert source is not None  # noqa: S101 - looked at before
        values[number] = source[number]
    return values


def _without_key(decoded: Sequence[Decoded]) -> Iterator[RowEvent]:
    for one in decoded:
        change = one.change
        if change.reason is not None or change.op == "t":
            yield _event(one, reason=change.reason)
        elif change.op == "d":
            yield _event(one, before=change.values)
        else:
            yield _event(one, after=change.values)


def _event(
    one: Decoded,
    *,
    after: Row | None = None,
    before: Row | None = None,
    reason: str | None = None,
) -> RowEvent:
    return RowEvent(
        offset=one.change.offset,
        op=one.change.op,
        key=one.change.key,
        after=after,
        before=before,
        transaction=one.transaction,
        read_lsn=one.read_lsn,
        reason=reason,
    )
