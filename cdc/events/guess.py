"""What became of a table where the source noted nothing: told from its catalogue, or not at all.

Without the event trigger a change is first seen in what the connector writes, by name, and the
catalogue may have gone on since. That old structure and catalogue share a column's number is
certain; what stands in rows that were rewritten is not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cdc.events.schema import Column
from cdc.events.steps import READ_AGAIN, Course, Note, Step, Stop, follow
from cdc.events.structure import Structure, StructureColumn
from cdc.events.types import lake_type
from cdc.tables import SchemaPolicy

_INSTALL = "connectors/source.sql has the event trigger that notes such changes; for this one, "


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
    told = _Told.of(old, written, now)
    doubts = list(_doubts(told, append=append))
    if doubts:
        return _doubtful(old, doubts[0])
    return follow(old, (Note(structure=told.then),), policy=policy, append=append)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    old: Structure
    now: Structure
    then: Structure  # when the connector wrote by the new schema
    doubts: tuple[str, ...]

    @classmethod
    def of(cls, old: Structure, written: Sequence[Column], now: Structure) -> "_Told":
        found: dict[int, StructureColumn] = {}
        doubts = []
        for column in written:
            meant = _meant(column, old, now)
            if isinstance(meant, str):
                doubts.append(f"has a column {column.name}: {meant}")
            else:
                found[meant.number] = meant
        then = _at_writing(old, now, found)
        return cls(old=old, now=now, then=then, doubts=tuple(doubts))


def _meant(column: Column, old: Structure, now: Structure) -> StructureColumn | str:
    """The column that the connector means by a name, or why that is not certain."""
    known = {c.number: c for s in (old, now) for c in s.columns if c.name == column.name}
    if not known:
        return "the catalogue does not know it any more"
    if len(known) > 1:
        return "two columns had this name, one after the other"
    (number,) = known
    both = (structure.numbered().get(number) for structure in (now, old))
    for found in both:
        if found is not None and found.name == column.name and _is_of_type(found, column.type):
            return found
    return f"the catalogue does not say when it was of type {column.type}"


def _is_of_type(column: StructureColumn, lake: str) -> bool:
    """What does not arrive may be written; nobody looks at it."""
    return not column.followed or lake in {column.lake, lake_type(column.pg).spark}


def _at_writing(old: Structure, now: Structure, found: Mapping[int, StructureColumn]) -> Structure:
    """The catalogue's structure with the columns of the writer, under the names it knew."""
    silent = {c.number: c for c in now.columns if not c.arrives}
    columns = silent | dict(found)
    names = {c.name: columns[c.number].name for c in now.columns if c.number in columns}
    return replace(
        now,
        table=old.table,
        primary_key=tuple(names.get(name, name) for name in now.primary_key),
        identity_index=tuple(names.get(name, name) for name in now.identity_index),
        columns=tuple(columns[number] for number in sorted(columns)),
    )


def _doubts(told: _Told, *, append: bool) -> Iterator[str]:
    """In the words that follow the table's name."""
    yield from told.doubts
    old, now, then = told.old, told.now, told.then
    if old.key_numbers() != now.key_numbers() or old.mode(append=append) != now.mode(append=append):
        yield "has another key now"
    shared = {c.number for c in now.columns} & {c.number for c in old.followed}
    for number in sorted(shared - {c.number for c in then.columns}):
        yield f"has a column {now.numbered()[number].name} that the connector does not write"
    if old.filenode == then.filenode:
        return
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
