"""Infer how a table changed when the source recorded no note of it.

Without the event trigger, a change first shows in what the connector writes, by column name, and
in the catalogue, which may have changed again since. The catalogue's columns are matched by number,
and only where the connector's names and types agree with the catalogue's. Two changes go unseen:
columns of one type that swap names, and a rewrite that alters values but not their type.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cdc.events.schema import Column
from cdc.events.structure.derive_steps import derive_course
from cdc.events.structure.steps import READ_AGAIN, Course, Note, Step, Stop
from cdc.events.structure.structure import Structure, StructureColumn
from cdc.events.values.lake_types import lake_type
from cdc.tables import SchemaPolicy

_INSTALL = "install the event triggers of connectors/structure.sql, which note such changes; then "


def guess(
    old: Structure, written: Sequence[Column], now: Structure | None, *, append: bool = False
) -> tuple[Step, ...]:
    """Return the steps of ``guess_course``: a single stop if more than one history is possible."""
    return guess_course(old, written, now, append=append).steps


def guess_course(
    old: Structure,
    written: Sequence[Column],
    now: Structure | None,
    *,
    policy: SchemaPolicy = "evolve",
    append: bool = False,
) -> Course:
    """Infer the steps from ``old`` to what the connector writes, and the structure to keep.

    ``written`` are the columns of a writer's schema, under their Postgres names with their lake
    types; ``now`` is the catalogue's structure, or None if the catalogue has no such table. The
    course has one stop and no structure if more than one history leads to what is written.
    """
    if now is None or now.oid != old.oid:
        return _doubtful(old, "was dropped, or dropped and created again")
    at_writing = _at_writing(written, now)
    doubt = next(_doubts(old, written, now, at_writing, append=append), None)
    if doubt is not None:
        return _doubtful(old, doubt)
    return derive_course(old, (Note(structure=at_writing),), policy=policy, append=append)


def _at_writing(written: Sequence[Column], now: Structure) -> Structure:
    """Return the catalogue's structure without columns that the connector did not know yet."""
    names = {column.name for column in written}
    return replace(now, columns=tuple(c for c in now.columns if c.name in names or not c.arrives))


def _doubts(
    old: Structure,
    written: Sequence[Column],
    now: Structure,
    at_writing: Structure,
    *,
    append: bool,
) -> Iterator[str]:
    """Yield why the history is uncertain, each time as words that follow the table's name."""
    for column in written:
        yield from _name_doubts(column, old, now)
    if _had_short_lived_columns(old, now):
        yield "had columns added and dropped again"
    if old.key_numbers() != now.key_numbers() or old.mode(append=append) != now.mode(append=append):
        yield "has a different key now"
    unwritten = set(now.numbered()) - set(at_writing.numbered())
    for number in sorted(unwritten & {c.number for c in old.followed}):
        yield f"has a column {now.numbered()[number].name} that the connector does not write"
    if old.filenode != now.filenode:
        yield from _rewrite_doubts(old, at_writing)


def _name_doubts(column: Column, old: Structure, now: Structure) -> Iterator[str]:
    """Yield why it is uncertain which column the connector means by a name."""
    before, after = _named(old, column.name), _named(now, column.name)
    if after is None:
        yield f"no longer has a column {column.name}"
    elif not _is_of_type(after, column.type):
        yield f"has a column {column.name} that was of type {column.type} for a while"
    elif before is not None and before.number != after.number and _is_of_type(before, column.type):
        yield f"had two columns named {column.name}, one after the other"


def _named(structure: Structure, name: str) -> StructureColumn | None:
    return next((column for column in structure.columns if column.name == name), None)


def _is_of_type(column: StructureColumn, lake: str) -> bool:
    """Return whether the column has the lake type; one that is not followed may have any."""
    return not column.followed or lake in {column.lake, lake_type(column.pg).spark}


def _had_short_lived_columns(old: Structure, now: Structure) -> bool:
    """Return whether columns were added and dropped in between; they may have had any name."""
    first = max(old.numbered(), default=0)
    later = [number for number in now.numbered() if number > first]
    return bool(later) and len(later) < max(later) - first


def _rewrite_doubts(old: Structure, at_writing: Structure) -> Iterator[str]:
    """Yield which columns a rewrite may have filled or altered.

    The table has new files after a conversion, a default per row, a TRUNCATE or a VACUUM FULL.
    """
    old_columns = old.numbered()
    for column in at_writing.followed:
        before = old_columns.get(column.number)
        if before is None and column.missing is None:
            yield f"was rewritten, perhaps with values in the new column {column.name}"
        elif before is not None and before.declared != column.declared:
            yield f"was rewritten, perhaps with altered values in column {column.name}"


def _doubtful(old: Structure, doubt: str) -> Course:
    stop = Stop(f"{old.table} {doubt}", f"{_INSTALL}{READ_AGAIN}")
    return Course(steps=(stop,), structure=None)
