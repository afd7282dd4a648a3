"""What the lake's table must go through when the structure of its source changes.

Steps are in an order in which each can be done after the one before it, and bring the lake's table
to what the source shows, the rows that are there already included. Where that cannot be known,
there is one kind of step: stop.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cdc.events.names import column_refusals, without_case
from cdc.events.schema import Column
from cdc.events.structure.conversion import held
from cdc.events.structure.declared import may_end_connector
from cdc.events.structure.structure import Structure, StructureColumn
from cdc.events.values.lake_types import lake_type
from cdc.tables import SchemaPolicy, TableId, TableMode

READ_AGAIN: Final = "let the table be read again: wal2lake resnapshot TABLE"
_CONVERTED: Final = 4  # pg_event_trigger_table_rewrite_reason(): a column's values were converted
_TIMES: Final = frozenset({"date", "timestamp", "timestamp_ntz"})
_PLAIN_TIME: Final = re.compile(r"\d{4}-[^B]*")  # neither infinite, nor BC, nor after 9999
_PLAIN_NUMBER: Final = re.compile(r"-?[0-9.]+")
_ASIDE: Final = "_cdc_aside_"


@dataclass(frozen=True, slots=True)
class RenameColumn:
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class DropColumn:
    name: str


@dataclass(frozen=True, slots=True)
class AddColumn:
    """``value`` is Postgres's text of what every row shows that is there already."""

    column: Column
    value: str | None = None


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """A plain cast of every value that is there to ``type`` is exact, and succeeds."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ChangeMode:
    """From now on rows are told apart otherwise; a key follows in a step of its own."""

    mode: TableMode


@dataclass(frozen=True, slots=True)
class ChangeKey:
    """No two rows that are there have these columns alike."""

    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RenameTable:
    table: TableId


@dataclass(frozen=True, slots=True)
class DropTable:
    """The source has it no more."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The table can follow no further without somebody's help."""

    reason: str
    remedy: str = READ_AGAIN


Step = (
    RenameColumn
    | DropColumn
    | AddColumn
    | WidenColumn
    | ChangeMode
    | ChangeKey
    | RenameTable
    | DropTable
    | Stop
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One row of ``wal2lake.structure``; ``structure`` is None where the table is gone."""

    structure: Structure | None
    rewrite: int = 0  # pg_event_trigger_table_rewrite_reason(); 0: none
    converted: bool = False
    """Whether an expression, and not a plain cast, may have made the values of a rewrite."""
    unpublished: bool = False
    """Whether changes of the table, or some of them, stopped being published at this note."""
    unnoted: bool = False
    """Whether notes of the table may be missing before this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The steps, and what is to be kept beside the table once they are done."""

    steps: tuple[Step, ...]
    structure: Structure | None

    @property
    def stops(self) -> tuple[Stop, ...]:
        """Where there are any, nothing else is to be done."""
        return tuple(step for step in self.steps if isinstance(step, Stop))


def steps(
    old: Structure,
    new: Structure | None,
    *,
    rewrite: int = 0,
    converted: bool = False,
    append: bool = False,
) -> tuple[Step, ...]:
    """From one structure to the next; ``append`` as ``source.append_only`` says."""
    note = Note(structure=new, rewrite=rewrite, converted=converted)
    return follow(old, (note,), append=append).steps


def follow(
    old: Structure,
    notes: Sequence[Note],
    *,
    policy: SchemaPolicy = "evolve",
    append: bool = False,
) -> Course:
    """Follow changes that have no event of the table between them.

    Columns go from note to note. Only the last key counts: one that was dropped and added again
    was missed by no event. But every note counts that says where events went: what is written to
    a table under another name, or while it is not published, is in no log.
    """
    found: list[Step] = []
    before = old
    for note in notes:
        if note.structure is None:
            return Course(steps=policed((_dropped(old, notes),), policy), structure=None)
        new = _left_out(before, note.structure) if policy == "ignore" else note.structure
        taken = policed(tuple(_of_columns(before, new, note)), policy)
        found += taken
        before = _followed(before, new, taken)
    found += policed((*_missed(old, notes), *_of_table(old, before, append=append)), policy)
    stops = tuple(dict.fromkeys(step for step in found if isinstance(step, Stop)))
    return Course(steps=stops or tuple(found), structure=before)


def _dropped(old: Structure, notes: Sequence[Note]) -> Step:
    """Tell a table that is gone from one that stands under its name again, and is another."""
    again = any(note.structure and note.structure.table == old.table for note in notes)
    return Stop(f"{old.table} was dropped and created again") if again else DropTable()


def policed(found: tuple[Step, ...], policy: SchemaPolicy) -> tuple[Step, ...]:
    """What ``source.schema_changes`` lets happen.

    ``ignore`` is about which columns there are. What says where their values are to be found, or
    that they are others now, is followed all the same: else the lake would be wrong.
    """
    if policy == "stop" and found:
        return (Stop("its structure changed, and source.schema_changes says stop"),)
    if policy == "ignore":
        kept = {without_case(step.name) for step in found if isinstance(step, DropColumn)}
        for step in found:
            if isinstance(step, RenameColumn) and without_case(step.new) in kept:
                return (Stop(f"column {step.old} takes the name of one that is kept: {step.new}"),)
        return tuple(step for step in found if not isinstance(step, AddColumn | DropColumn))
    return found


def _left_out(old: Structure, new: Structure) -> Structure:
    known = old.numbered()
    return replace(
        new,
        columns=tuple(
            column if column.number in known else replace(column, left_out=True)
            for column in new.columns
        ),
    )


def _followed(old: Structure, new: Structure, taken: Sequence[Step]) -> Structure:
    """``new`` with what the lake holds wider than the source needs, and what it leaves out."""
    known = old.numbered()
    widened = {step.name: step.type for step in taken if isinstance(step, WidenColumn)}
    columns = []
    for column in new.columns:
        before = known.get(column.number)
        if before is not None and before.followed and column.arrives:
            columns.append(replace(column, lake=widened.get(column.name, before.lake)))
        elif before is not None and before.left_out:
            columns.append(replace(column, left_out=True))
        else:
            columns.append(column)
    return replace(new, columns=tuple(columns))


def _of_columns(old: Structure, new: Structure, note: Note) -> Iterator[Step]:
    """Drops free names, renames take them, and additions come last."""
    if old.oid != new.oid:
        yield Stop(f"{new.table} was dropped and created again")
        return
    yield from _misread(old, new)
    yield from _ending(old, new)
    bad = tuple(_bad_names(new))
    yield from bad
    if bad:  # the lake has no place for a name that is another's, whatever is put aside
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
    """One by one, each to a name that is free. Names that differ only in case are one in the lake.

    Of names that go round in a circle, one is put aside first. The new ones are all told apart: of
    two that are one, one would be put aside for ever.
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
    lake = held(old, new)
    if old.parts != new.parts and old.declared == new.declared:
        yield Stop(f"the type of column {new.name} of {table} has other attributes now")
    elif lake is None:
        yield Stop(
            f"column {new.name} of {table} changed its type from {_type(old)} to {_type(new)}:"
            " values that are there may be others now"
        )
    elif lake != old.lake:
        yield WidenColumn(new.name, lake)


def _type(column: StructureColumn) -> str:
    """As the source declares it, as far as this tells two types apart."""
    name = column.declared.element or column.declared.name
    numbers = [str(number) for number in (column.pg.length, column.pg.scale) if number is not None]
    array = "[]" if column.declared.element else ""
    return f"{name}({', '.join(numbers)}){array}" if numbers else f"{name}{array}"


def _added(old: Structure, present: Mapping[int, StructureColumn], note: Note) -> Iterator[Step]:
    known = old.numbered()
    for number, column in present.items():
        before = known.get(number)
        # A partitioned table has no rows of its own, and says nothing of those of its partitions.
        unsaid = column.has_default and column.missing is None
        if before is None and unsaid and (note.rewrite or old.kind == "p"):
            yield Stop(
                f"the rows of {old.table} hold values in the new column {column.name}"
                " that were made for each of them"
            )
        elif before is None and not _holds(column):
            yield Stop(
                f"the rows of {old.table} show a value in the new column {column.name}"
                " that the lake's column cannot hold"
            )
        elif before is None:
            yield AddColumn(column.column, column.missing)
        elif not before.arrives:
            yield Stop(f"column {column.name} of {old.table} did not arrive until now")


def _holds(column: StructureColumn) -> bool:
    """Whether the lake's type has the value that older rows show, in Postgres's own spelling."""
    if column.missing is None:
        return True
    if not lake_type(column.pg).exact:
        return False
    if column.lake in _TIMES:
        return bool(_PLAIN_TIME.fullmatch(column.missing))
    return not column.lake.startswith("decimal") or bool(_PLAIN_NUMBER.fullmatch(column.missing))


def _bad_names(new: Structure) -> Iterator[Stop]:
    """What ``check`` says of a table before the start."""
    for found in column_refusals(new.table, [column.name for column in new.followed]):
        yield Stop(f"{new.table}: {found.reason}", f"{found.remedy}, then {READ_AGAIN}")


def _misread(old: Structure, new: Structure) -> Iterator[Stop]:
    """Yield columns whose values the connector alters, or leaves out for it.

    Also those that are not new: their type may have been renamed.
    """
    before = {column.number for column in old.followed}
    for column in new.columns:
        if column.namesake and (column.followed or column.number in before):
            declared = column.declared
            name = declared.domain or declared.element or declared.name
            yield Stop(
                f"column {column.name} of {new.table}: the connector takes its type {name} for"
                f" {column.namesake}",
                f"rename its type; wal2lake down and wal2lake up; then {READ_AGAIN}",
            )


def _ending(old: Structure, new: Structure) -> Iterator[Stop]:
    """New columns that the connector was not told to leave out, and may end at."""
    known = {(column.number, column.declared.name) for column in old.columns}
    for column in new.columns:
        fresh = (column.number, column.declared.name) not in known and not column.generated
        if fresh and may_end_connector(column.declared):
            yield Stop(
                f"the connector may end at values of the new column {column.name} of {new.table}",
                f"wal2lake down and up, so that it leaves the column out; then {READ_AGAIN}",
            )


def _identity_remedy(new: Structure) -> str:
    """Say what brings the rows a name again: that of the key where there is one."""
    alter = f"ALTER TABLE {new.table} REPLICA IDENTITY"
    if new.primary_key:
        return f"{alter} DEFAULT, then {READ_AGAIN}"
    return f"give it a primary key, or {alter} FULL; then {READ_AGAIN}"


def _missed(old: Structure, notes: Sequence[Note]) -> Iterator[Stop]:
    """Yield why events between the notes may have gone elsewhere, or nowhere.

    A table that has another name at the last note is renamed, and no more than that.
    """
    names = [note.structure.table for note in notes if note.structure is not None]
    if names[-1:] == [old.table]:
        for name in dict.fromkeys(name for name in names if name != old.table):
            yield Stop(
                f"{old.table} was called {name} for a while: changes of it under that name did not"
                " arrive"
            )
    if any(note.unpublished for note in notes):
        yield Stop(
            f"{old.table} was not published, or not wholly, for a while: changes that were made"
            " then did not arrive"
        )
    if any(note.unnoted for note in notes):
        yield Stop(
            f"changes of {old.table}'s structure may not have been noted: its definition changed"
            " while the event triggers in the source were disabled, altered or gone"
        )


def _of_table(old: Structure, new: Structure, *, append: bool) -> Iterator[Step]:
    mode = new.mode(append=append)
    missing = [name for name in new.key if name not in {c.name for c in new.followed}]
    if not new.followed:
        yield Stop(f"no column of {new.table} arrives any more", f"give it one, then {READ_AGAIN}")
    if isinstance(mode, str):
        yield Stop(f"{new.table} {mode}", _identity_remedy(new))
    elif mode is TableMode.KEYED and missing:
        yield Stop(f"column {missing[0]} of the key of {new.table} is not in the lake")
    elif mode is not old.mode(append=append):
        yield ChangeMode(mode)
        if mode is TableMode.KEYED:
            yield ChangeKey(new.key)
    elif mode is TableMode.KEYED and old.key_numbers() != new.key_numbers():
        yield ChangeKey(new.key)
    if old.table != new.table:
        yield RenameTable(new.table)
