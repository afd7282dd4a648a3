"""Derive the steps a lake table must take when the structure of its source table changes.

Each step can be done once the ones before it are done. Together they bring the lake table,
including the rows it already has, to what the source shows. Where that cannot be known, the only
step is a stop.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cdc.events.names import without_case
from cdc.events.structure.column_steps import column_steps
from cdc.events.structure.steps import (
    READ_AGAIN,
    AddColumn,
    ChangeKey,
    ChangeMode,
    Course,
    DropColumn,
    DropTable,
    Note,
    RenameColumn,
    RenameTable,
    Step,
    Stop,
    WidenColumn,
)
from cdc.events.structure.structure import Structure
from cdc.tables import SchemaPolicy, TableMode


def derive_steps(
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
    return derive_course(old, (note,), append=append).steps


def derive_course(
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
        of_columns = policed(tuple(column_steps(before, new, note)), policy)
        followed += of_columns
        before = _followed(before, new, of_columns)
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
    yield from _masked_key(new)
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


def _masked_key(new: Structure) -> Iterator[Stop]:
    """Yield a stop for each masked column that identifies rows: equal masks are not equal rows."""
    identity = {*new.key, *new.identity_index}
    for column in new.columns:
        if column.mask and column.name in identity:
            yield Stop(
                f"column {column.name} of the key of {new.table} is masked by source.columns",
                f"take it out of the key, or out of source.columns; then {READ_AGAIN}",
            )


def _identity_remedy(new: Structure) -> str:
    """Return how to identify the table's rows again: by its key if it has one."""
    alter = f"ALTER TABLE {new.table} REPLICA IDENTITY"
    if new.primary_key:
        return f"{alter} DEFAULT, then {READ_AGAIN}"
    return f"give it a primary key, or {alter} FULL; then {READ_AGAIN}"
