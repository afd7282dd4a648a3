"""Derive the steps a lake table must take when the structure of its source table changes.

Each step can be done once the ones before it are done. Together they bring the lake table,
including the rows it already has, to what the source shows. Where that cannot be known, the only
step is a stop.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cdc.events.names import column_refusals, without_case
from cdc.events.schema import Column
from cdc.events.structure.conversion import common_type
from cdc.events.structure.declared import may_end_connector
from cdc.events.structure.structure import Structure, StructureColumn
from cdc.events.values.lake_types import lake_type
from cdc.tables import SchemaPolicy, TableId, TableMode

READ_AGAIN: Final = "run wal2lake resnapshot TABLE"
_CONVERTED: Final = 4  # pg_event_trigger_table_rewrite_reason(): a column's values were converted
_TIMES: Final = frozenset({"date", "timestamp", "timestamp_ntz"})
_PLAIN_TIME: Final = re.compile(r"\d{4}-[^B]*")  # neither infinite, nor BC, nor after 9999
_PLAIN_NUMBER: Final = re.compile(r"-?[0-9.]+")
_ASIDE: Final = "_cdc_aside_"


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Rename a column; no other column has the new name at this step."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Drop a column with its values."""

    name: str


@dataclass(frozen=True, slots=True)
class AddColumn:
    """Add a column; ``value`` is what every existing row shows in it, as Postgres's text."""

    column: Column
    value: str | None = None


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """Change a column's type; a plain cast of every existing value to ``type`` is exact."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ChangeMode:
    """Change how rows are identified; a new key follows in a ``ChangeKey`` of its own."""

    mode: TableMode


@dataclass(frozen=True, slots=True)
class ChangeKey:
    """Change the key; no two existing rows have equal values in these columns."""

    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RenameTable:
    """Follow the table under another name."""

    table: TableId


@dataclass(frozen=True, slots=True)
class DropTable:
    """Note that the source no longer has the table."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop following the table until someone applies the remedy."""

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
    """One row of ``wal2lake.structure``; ``structure`` is None if the table was dropped."""

    structure: Structure | None
    rewrite: int = 0  # pg_event_trigger_table_rewrite_reason(); 0: none
    converted: bool = False
    """Whether the rewrite may have used an expression rather than a plain cast."""
    unpublished: bool = False
    """Whether some or all changes of the table stopped being published at this note."""
    unnoted: bool = False
    """Whether earlier notes of the table may be missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The steps, and the structure to store with the table once they are done."""

    steps: tuple[Step, ...]
    structure: Structure | None

    @property
    def stops(self) -> tuple[Stop, ...]:
        """The stops among the steps; if there are any, there is no other step."""
        return tuple(step for step in self.steps if isinstance(step, Stop))


def steps(
    old: Structure,
    new: Structure | None,
    *,
    rewrite: int = 0,
    converted: bool = False,
    append: bool = False,
) -> tuple[Step, ...]:
    """Return the steps from one structure to the next, which is None for a dropped table.

    ``append`` says whether ``source.append_only`` names the table; ``rewrite`` and ``converted``
    are those of ``Note``.
    """
    note = Note(structure=new, rewrite=rewrite, converted=converted)
    return follow(old, (note,), append=append).steps


def follow(
    old: Structure,
    notes: Sequence[Note],
    *,
    policy: SchemaPolicy = "evolve",
    append: bool = False,
) -> Course:
    """Derive the course through changes that have no event of the table between them.

    Columns are followed from note to note. Of the key only the last note counts: no event missed a
    key that was dropped and added again. Every note counts that says where events went, because
    changes made under another name, or while the table is not published, are in no log.
    """
    followed: list[Step] = []
    before = old
    for note in notes:
        if note.structure is None:
            return Course(steps=policed((_dropped(old, notes),), policy), structure=None)
        new = _left_out(before, note.structure) if policy == "ignore" else note.structure
        column_steps = policed(tuple(_column_steps(before, new, note)), policy)
        followed += column_steps
        before = _followed(before, new, column_steps)
    followed += policed((*_missed(old, notes), *_table_steps(old, before, append=append)), policy)
    stops = tuple(dict.fromkeys(step for step in followed if isinstance(step, Stop)))
    return Course(steps=stops or tuple(followed), structure=before)


def _dropped(old: Structure, notes: Sequence[Note]) -> Step:
    """Return a stop if another table has the dropped table's name now, else a drop."""
    again = any(note.structure and note.structure.table == old.table for note in notes)
    return Stop(f"{old.table} was dropped and created again") if again else DropTable()


def policed(proposed: tuple[Step, ...], policy: SchemaPolicy) -> tuple[Step, ...]:
    """Return the steps that ``source.schema_changes`` allows.

    ``ignore`` only skips adding and dropping columns. Steps that say where a column's values are,
    or that they have changed, are still taken: otherwise the lake would be wrong.
    """
    if policy == "stop" and proposed:
        return (Stop("its structure changed, and source.schema_changes is set to stop"),)
    if policy == "ignore":
        kept = {without_case(step.name) for step in proposed if isinstance(step, DropColumn)}
        for step in proposed:
            if isinstance(step, RenameColumn) and without_case(step.new) in kept:
                return (
                    Stop(
                        f"column {step.old} takes the name of a dropped column that the lake keeps:"
                        f" {step.new}"
                    ),
                )
        return tuple(step for step in proposed if not isinstance(step, AddColumn | DropColumn))
    return proposed


def _left_out(old: Structure, new: Structure) -> Structure:
    """Return ``new`` with its new columns marked as left out of the lake."""
    old_columns = old.numbered()
    return replace(
        new,
        columns=tuple(
            column if column.number in old_columns else replace(column, left_out=True)
            for column in new.columns
        ),
    )


def _followed(old: Structure, new: Structure, taken: Sequence[Step]) -> Structure:
    """Return ``new`` with the lake's types, which may be wider, and the columns it leaves out."""
    old_columns = old.numbered()
    widened = {step.name: step.type for step in taken if isinstance(step, WidenColumn)}
    columns = []
    for column in new.columns:
        before = old_columns.get(column.number)
        if before is not None and before.followed and column.arrives:
            columns.append(replace(column, lake=widened.get(column.name, before.lake)))
        elif before is not None and before.left_out:
            columns.append(replace(column, left_out=True))
        else:
            columns.append(column)
    return replace(new, columns=tuple(columns))


def _column_steps(old: Structure, new: Structure, note: Note) -> Iterator[Step]:
    """Yield drops first, which free names, then renames, which use them, and additions last."""
    if old.oid != new.oid:
        yield Stop(f"{new.table} was dropped and created again")
        return
    yield from _misread(old, new)
    yield from _connector_crashes(old, new)
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


def _identity_remedy(new: Structure) -> str:
    """Return how to identify the table's rows again: by its key if it has one."""
    alter = f"ALTER TABLE {new.table} REPLICA IDENTITY"
    if new.primary_key:
        return f"{alter} DEFAULT, then {READ_AGAIN}"
    return f"give it a primary key, or {alter} FULL; then {READ_AGAIN}"


def _missed(old: Structure, notes: Sequence[Note]) -> Iterator[Stop]:
    """Yield why events between the notes may have gone elsewhere, or nowhere.

    A table that still has another name at the last note was only renamed.
    """
    names = [note.structure.table for note in notes if note.structure is not None]
    if names[-1:] == [old.table]:
        for name in dict.fromkeys(name for name in names if name != old.table):
            yield Stop(
                f"{old.table} was called {name} for a while: changes made under that name did not"
                " arrive"
            )
    if any(note.unpublished for note in notes):
        yield Stop(
            f"{old.table} was not fully published for a while: changes made then did not arrive"
        )
    if any(note.unnoted for note in notes):
        yield Stop(
            f"changes of {old.table}'s structure may not have been noted: its definition changed"
            " while the event triggers in the source were disabled, altered or gone"
        )


def _table_steps(old: Structure, new: Structure, *, append: bool) -> Iterator[Step]:
    mode = new.mode(append=append)
    missing = [name for name in new.key if name not in {c.name for c in new.followed}]
    if not new.followed:
        yield Stop(f"no column of {new.table} arrives any longer", f"add one, then {READ_AGAIN}")
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
