"""Derive the steps that a table's columns need between one note of its structure and the next."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from cdc.config.masks import maskable
from cdc.events.names import column_refusals, without_case
from cdc.events.structure.conversion import common_type
from cdc.events.structure.declared import may_end_connector
from cdc.events.structure.steps import (
    READ_AGAIN,
    AddColumn,
    DropColumn,
    Note,
    RenameColumn,
    Step,
    Stop,
    WidenColumn,
)
from cdc.events.structure.structure import Structure, StructureColumn
from cdc.events.values.lake_types import lake_type
from cdc.tables import TableId

_CONVERTED: Final = 4  # pg_event_trigger_table_rewrite_reason(): a column's values were converted
_TIMES: Final = frozenset({"date", "timestamp", "timestamp_ntz"})
_PLAIN_TIME: Final = re.compile(r"\d{4}-[^B]*")  # neither infinite, nor BC, nor after 9999
_PLAIN_NUMBER: Final = re.compile(r"-?[0-9.]+")
MASKED_AGAIN: Final = (
    "correct source.columns and run wal2lake apply-config; then read the table again: wal2lake"
    " resnapshot"
)
_ASIDE: Final = "_cdc_aside_"


def column_steps(old: Structure, new: Structure, note: Note) -> Iterator[Step]:
    """Yield drops first, which free names, then renames, which use them, and additions last."""
    if old.oid != new.oid:
        yield Stop(f"{new.table} was dropped and created again")
        return
    yield from _misread(old, new)
    yield from _connector_crashes(old, new)
    yield from _masked_otherwise(old, new)
    bad = tuple(_bad_names(new))
    yield from bad
    if bad:  # two columns of one name never fit in the lake, whichever is put aside
        return
    if note.rewrite & _CONVERTED and note.converted:
        yield Stop(f"values of {new.table} were converted by an expression")
    present = {column.number: column for column in new.columns if column.followed}
    for column in old.followed:
        if column.number not in present:
            yield DropColumn(column.name)
    stayed = {c.number: (c, present[c.number]) for c in old.followed if c.number in present}
    yield from _renamed({number: (a.name, b.name) for number, (a, b) in stayed.items()})
    for before, after in stayed.values():
        yield from _retyped(new.table, before, after)
    yield from _added(old, present, note)


def _renamed(names: Mapping[int, tuple[str, str]]) -> Iterator[RenameColumn]:
    """Yield renames one by one, each to a free name; case does not tell names apart in the lake.

    Where names go round in a circle, one is put aside first. The new names must all differ:
    otherwise one of two equal names would be put aside for ever.
    """
    taken = {without_case(old) for old, _ in names.values()}
    waiting = {number: pair for number, pair in names.items() if pair[0] != pair[1]}
    while waiting:
        free = (n for n, (_, new) in waiting.items() if without_case(new) not in taken)
        number = next(free, None)
        if number is None:
            number, (old, new) = next(iter(waiting.items()))
            target = f"{_ASIDE}{number}"
            waiting[number] = target, new
        else:
            old, target = waiting.pop(number)
        yield RenameColumn(old, target)
        taken = taken - {without_case(old)} | {without_case(target)}


def _retyped(table: TableId, old: StructureColumn, new: StructureColumn) -> Iterator[Step]:
    spelled = dict(old.labels)
    if any(spelled.get(oid, label) != label for oid, label in new.labels):
        yield Stop(f"a value of the enum of column {new.name} of {table} was renamed")
    lake = common_type(old, new)
    if old.parts != new.parts and old.declared == new.declared:
        yield Stop(f"the attributes of the type of column {new.name} of {table} changed")
    elif lake is None:
        yield Stop(
            f"column {new.name} of {table} changed its type from {_type(old)} to {_type(new)}:"
            " existing values may have changed"
        )
    elif lake != old.lake:
        yield WidenColumn(new.name, lake)


def _type(column: StructureColumn) -> str:
    """Return the declared type, with as much detail as tells two types apart."""
    name = column.declared.element or column.declared.name
    numbers = [str(number) for number in (column.pg.length, column.pg.scale) if number is not None]
    array = "[]" if column.declared.element else ""
    return f"{name}({', '.join(numbers)}){array}" if numbers else f"{name}{array}"


def _added(old: Structure, present: Mapping[int, StructureColumn], note: Note) -> Iterator[Step]:
    old_columns = old.numbered()
    for number, column in present.items():
        before = old_columns.get(number)
        # A partitioned table has no rows of its own; its catalogue row does not describe those of
        # its partitions.
        unknown_value = column.has_default and column.missing is None
        if before is None and unknown_value and (note.rewrite or old.kind == "p"):
            yield Stop(
                f"existing rows of {old.table} were given values in the new column {column.name},"
                " each its own"
            )
        elif before is None and not _holds(column):
            yield Stop(
                f"existing rows of {old.table} show a value in the new column {column.name}"
                " that the lake's column cannot hold"
            )
        elif before is None:
            yield AddColumn(column.column, column.missing)
        elif not before.arrives:
            yield Stop(f"column {column.name} of {old.table} did not arrive before this change")


def _holds(column: StructureColumn) -> bool:
    """Return whether the lake's type can hold the value that older rows show."""
    if column.missing is None:
        return True
    if not lake_type(column.pg).exact:
        return False
    if column.lake in _TIMES:
        return bool(_PLAIN_TIME.fullmatch(column.missing))
    return not column.lake.startswith("decimal") or bool(_PLAIN_NUMBER.fullmatch(column.missing))


def _masked_otherwise(old: Structure, new: Structure) -> Iterator[Stop]:
    """Yield a stop for each column whose values would be masked otherwise from now on.

    A renamed column may no longer match its pattern, or match one.
    """
    before = old.numbered()
    for column in new.columns:
        was = before.get(column.number, column)
        if was.mask != column.mask:
            renamed = f", which was called {was.name}," if was.name != column.name else ""
            yield Stop(
                f"column {column.name}{renamed} of {new.table} is masked otherwise by"
                f" source.columns: {column.mask or 'not at all'} instead of"
                f" {was.mask or 'not at all'}",
                MASKED_AGAIN,
            )
        elif not maskable(column.mask, column.pg.name):
            yield Stop(
                f"column {column.name} of {new.table} is of type {column.declared.name}, which"
                f" source.columns cannot {column.mask.partition(' ')[0]}",
                f"change its type back, or drop it in source.columns; then {MASKED_AGAIN}",
            )


def _bad_names(new: Structure) -> Iterator[Stop]:
    """Yield a stop for each column name that ``check`` would refuse before the start."""
    for refusal in column_refusals(new.table, [column.name for column in new.followed]):
        yield Stop(f"{new.table}: {refusal.reason}", f"{refusal.remedy}, then {READ_AGAIN}")


def _misread(old: Structure, new: Structure) -> Iterator[Stop]:
    """Yield a stop for each column whose type the connector takes for another of the same name.

    It alters or leaves out their values. Old columns count too: their type may have been renamed.
    """
    before = {column.number for column in old.followed}
    for column in new.columns:
        if column.namesake and (column.followed or column.number in before):
            declared = column.declared
            name = declared.domain or declared.element or declared.name
            yield Stop(
                f"column {column.name} of {new.table}: the connector takes its type {name} for"
                f" {column.namesake}",
                f"rename the type, run wal2lake down and wal2lake up, then {READ_AGAIN}",
            )


def _connector_crashes(old: Structure, new: Structure) -> Iterator[Stop]:
    """Yield a stop for each new column that may crash the connector, which does not exclude it."""
    old_types = {(column.number, column.declared.name) for column in old.columns}
    for column in new.columns:
        is_new = (column.number, column.declared.name) not in old_types and not column.generated
        if is_new and may_end_connector(column.declared):
            yield Stop(
                f"values of the new column {column.name} of {new.table} may crash the connector",
                "run wal2lake down and wal2lake up, so that the connector leaves the column out;"
                f" then {READ_AGAIN}",
            )
