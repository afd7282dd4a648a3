"""What became of a table where the source noted nothing: told from its catalogue, or not at all.

Without the event trigger a change is first seen in what the connector writes, by name, and in the
catalogue, which may have gone on since. What is taken from it is taken by the numbers of columns,
and only where the connector's names and types are the catalogue's own. Columns that exchange their
names under one type, and values that are others after a rewrite of equal types, are seen by nobody.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cdc.events.schema import Column
from cdc.events.structure.steps import READ_AGAIN, Course, Note, Step, Stop, follow
from cdc.events.structure.structure import Structure, StructureColumn
from cdc.events.values.lake_types import lake_type
from cdc.tables import SchemaPolicy

_INSTALL = "connectors/structure.sql has the event triggers that note such changes; for this one, "


def guess(
    old: Structure, written: Sequence[Column], now: Structure | None, *, append: bool = False
) -> tuple[Step, ...]:
    """The steps to what the connector writes; a stop where more than one history leads there."""
    return supposed(old, written, now, append=append).steps


def supposed(
    old: Structure,
    written: Sequence[Column],
    now: Structure | None,
    *,
    policy: SchemaPolicy = "evolve",
    append: bool = False,
) -> Course:
    """``guess`` with the structure that is to be kept beside the table afterwards.

    ``written`` are the columns of a writer's schema, under their names in Postgres, with the types
    that the lake has for them; ``now`` is None where the catalogue has no such table.
    """
    if now is None or now.oid != old.oid:
        return _doubtful(old, "was dropped, or dropped and created again")
    then = _at_writing(written, now)
    doubt = next(_doubts(old, written, now, then, append=append), None)
    if doubt is not None:
        return _doubtful(old, doubt)
    return follow(old, (Note(structure=then),), policy=policy, append=append)


def _at_writing(written: Sequence[Column], now: Structure) -> Structure:
    """The catalogue's structure without the columns that the connector did not know yet."""
    names = {column.name for column in written}
    return replace(now, columns=tuple(c for c in now.columns if c.name in names or not c.arrives))


def _doubts(
    old: Structure, written: Sequence[Column], now: Structure, then: Structure, *, append: bool
) -> Iterator[str]:
    """In the words that follow the table's name."""
    for column in written:
        yield from _of_name(column, old, now)
    if _come_and_gone(old, now):
        yield "had columns added and dropped again"
    if old.key_numbers() != now.key_numbers() or old.mode(append=append) != now.mode(append=append):
        yield "has another key now"
    silent = set(now.numbered()) - set(then.numbered())
    for number in sorted(silent & {c.number for c in old.followed}):
        yield f"has a column {now.numbered()[number].name} that the connector does not write"
    if old.filenode != now.filenode:
        yield from _of_rewrite(old, then)


def _of_name(column: Column, old: Structure, now: Structure) -> Iterator[str]:
    """Whether it is certain which column the connector means by a name."""
    before, after = _named(old, column.name), _named(now, column.name)
    if after is None:
        yield f"has no column {column.name} any more"
    elif not _is_of_type(after, column.type):
        yield f"has a column {column.name} that was of type {column.type} for a while"
    elif before is not None and before.number != after.number and _is_of_type(before, column.type):
        yield f"had two columns of the name {column.name}, one after the other"


def _named(structure: Structure, name: str) -> StructureColumn | None:
    return next((column for column in structure.columns if column.name == name), None)


def _is_of_type(column: StructureColumn, lake: str) -> bool:
    """What does not arrive may be written; nobody looks at it."""
    return not column.followed or lake in {column.lake, lake_type(column.pg).spark}


def _come_and_gone(old: Structure, now: Structure) -> bool:
    """Whether a column that is in neither may have had any of the names between the two."""
    first = max(old.numbered(), default=0)
    later = [number for number in now.numbered() if number > first]
    return bool(later) and len(later) < max(later) - first


def _of_rewrite(old: Structure, then: Structure) -> Iterator[str]:
    """Its files are others: after a conversion, a default for each row, a TRUNCATE, a VACUUM."""
    known = old.numbered()
    for column in then.followed:
        before = known.get(column.number)
        if before is None and column.missing is None:
            yield f"was rewritten, perhaps with values in the new column {column.name}"
        elif before is not None and before.declared != column.declared:
            yield f"was rewritten, perhaps with other values in column {column.name}"


def _doubtful(old: Structure, doubt: str) -> Course:
    stop = Stop(f"{old.table} {doubt}", f"{_INSTALL}{READ_AGAIN}")
    return Course(steps=(stop,), structure=None)
