"""Structure steps, done one by one, give the lake the source's columns after any change."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cdc.events.names import column_refusals, without_case
from cdc.events.schema import Column, fits
from cdc.events.structure.derive_steps import derive_course, derive_steps
from cdc.events.structure.guess import guess_course
from cdc.events.structure.steps import (
    AddColumn,
    ChangeKey,
    ChangeMode,
    DropColumn,
    Note,
    RenameColumn,
    RenameTable,
    Step,
    Stop,
    WidenColumn,
)
from cdc.events.structure.structure import Structure, StructureColumn, parse
from cdc.tables import SchemaPolicy, TableId, TableMode
from tests.events.structures import column, note, numeric, varchar

NAMES = ("id", "a", "A", "b", "B", "c", "C", "d", "e", "f", "g", "Ä")
ALIKE = ("a", "A", "b", "B", "a-b", "a_b", "s", "\u017f", "i", "\u0130", "k", "\u212a")
KINDS: tuple[dict[str, Any], ...] = (
    {"kind": "int2"},
    {"kind": "int4"},
    {"kind": "int8"},
    {"kind": "float4"},
    {"kind": "float8"},
    {"kind": "text"},
    varchar(5),
    varchar(9),
    numeric(8, 2),
    numeric(10, 2),
    numeric(12, 4),
    {"kind": "numeric"},
    {"kind": "point"},  # does not arrive
    {"kind": "_int4"},
    {"kind": "_int8"},
)
TABLES = ("orders", "bills")


@st.composite
def structures(draw: st.DrawFn) -> Structure:
    """Draw a structure of one to four columns."""
    numbers = draw(st.sets(st.integers(1, 4), min_size=1))
    return _drawn(draw, {number: draw(st.sampled_from(KINDS)) for number in numbers}, {}, set())


@st.composite
def successors(draw: st.DrawFn, old: Structure, used: int = 0) -> Structure:
    """Draw a later structure of the same table.

    A number stays with its column and is never reused; names and types may change. ``used`` is
    the highest number that any earlier structure had.
    """
    used = max(used, *old.numbered())
    kinds = {c.number: KINDS[_kind(c)] for c in old.columns}
    names = {c.number: c.name for c in old.columns}
    for number in draw(st.sets(st.sampled_from(sorted(kinds)), max_size=len(kinds) - 1)):
        del kinds[number]
    for number in draw(st.sets(st.integers(used + 1, used + 2), max_size=1)):
        kinds[number] = draw(st.sampled_from(KINDS))
    for number in draw(st.sets(st.sampled_from(sorted(kinds)), max_size=1)):
        kinds[number] = draw(st.sampled_from(KINDS))
    if draw(st.booleans()):
        names = {}  # every column gets a new name
    return _drawn(draw, kinds, names, set(old.key_numbers()))


def _kind(typed: StructureColumn) -> int:
    """Return the index in KINDS of the column's type."""
    wanted = typed.declared.name, typed.declared.modifier
    kinds = [(kind["kind"], kind.get("modifier", -1)) for kind in KINDS]
    return kinds.index(wanted)


def _drawn(
    draw: st.DrawFn, kinds: dict[int, dict[str, Any]], old_names: dict[int, str], key: set[int]
) -> Structure:
    """Draw a structure with these columns, whose key is of columns that arrive.

    A structure without a key has the replica identity ``full``.
    """
    taken = {old_names[number].lower() for number in kinds if number in old_names}
    fresh = [name for name in draw(st.permutations(NAMES)) if name.lower() not in taken]
    fresh = list({name.lower(): name for name in fresh}.values())
    names = {number: old_names.get(number) or fresh.pop() for number in sorted(kinds)}
    arriving = [number for number, kind in kinds.items() if kind["kind"] != "point"]
    if not key or not key <= set(arriving) or draw(st.integers(0, 3)) == 0:
        key = draw(st.sets(st.sampled_from(arriving), max_size=2)) if arriving else set()
    return parse(
        note(
            *(
                column(n, names[n], **kinds[n], missing=draw(st.sampled_from([None, "7"])))
                for n in sorted(kinds)
            ),
            primary_key=[names[number] for number in sorted(key)],
            identity=draw(st.sampled_from("df")) if key else "f",
            table=draw(st.sampled_from(TABLES)),
        )
    )


pairs = structures().flatmap(lambda old: st.tuples(st.just(old), successors(old)))


@st.composite
def chains(draw: st.DrawFn) -> list[Structure]:
    """Draw two to five structures of one table, each following from the one before."""
    chain = [draw(structures())]
    for _ in range(draw(st.integers(1, 4))):
        used = max(number for structure in chain for number in structure.numbered())
        chain.append(draw(successors(chain[-1], used)))
    return chain


@dataclass
class Lake:
    """A table of the lake; as in the query engines, column names ignore case."""

    table: TableId
    mode: TableMode
    key: tuple[str, ...]
    types: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    """The number, in the source, of the column whose values these are."""

    @classmethod
    def of(cls, structure: Structure) -> "Lake":
        """Return the table as a new one with this structure would be."""
        mode = structure.mode(append=False)
        assert isinstance(mode, TableMode)
        lake = cls(structure.table, mode, structure.key if mode is TableMode.KEYED else ())
        for followed in structure.followed:
            lake.types[followed.name] = followed.lake
            lake.numbers[followed.name] = followed.number
        return lake

    def do(self, step: Step, new: Structure | None) -> None:
        """Do a step that leads to ``new``; fail if the table does not allow it."""
        match step:
            case RenameColumn(old, name):
                self._refuse_taken(name)
                self.types[name] = self.types.pop(old)
                self.numbers[name] = self.numbers.pop(old)
                self.key = tuple(name if key == old else key for key in self.key)
            case DropColumn(name):
                del self.types[name], self.numbers[name]
            case AddColumn(added, _):
                self._refuse_taken(added.name)
                self.types[added.name] = added.type
                numbers = {c.name: c.number for c in new.columns} if new else {}
                self.numbers[added.name] = numbers.get(added.name, 0)
            case WidenColumn(name, wider):
                assert self.types[name] != wider
                self.types[name] = wider
            case ChangeKey(key):
                assert set(key) <= set(self.types)
                self.key = key
            case ChangeMode(mode):
                self.mode, self.key = mode, ()
            case RenameTable(table):
                self.table = table
            case _:
                raise AssertionError(step)

    def _refuse_taken(self, name: str) -> None:
        assert without_case(name) not in {without_case(known) for known in self.types}


def agree(lake: Lake, structure: Structure) -> None:
    """Assert that the lake has the structure, with types at least as wide."""
    wanted = Lake.of(structure)
    assert lake.numbers == wanted.numbers
    assert (lake.table, lake.mode, set(lake.key)) == (wanted.table, wanted.mode, set(wanted.key))
    for name, wider in lake.types.items():
        assert fits(wanted.types[name], wider)


@given(pairs)
def test_the_steps_of_a_change_give_the_new_structure(pair: tuple[Structure, Structure]) -> None:
    old, new = pair
    found = derive_steps(old, new)
    stops = [step for step in found if isinstance(step, Stop)]
    event("stopped" if stops else "followed")
    if stops:
        assert list(found) == stops
        return
    lake = Lake.of(old)
    for step in found:
        lake.do(step, new)
    agree(lake, new)


@given(chains())
def test_the_stored_structure_is_enough_for_the_next_change(chain: list[Structure]) -> None:
    """Like the job, write each structure as text, and read it again for the next change."""
    kept, lake = chain[0], Lake.of(chain[0])
    for new in chain[1:]:
        course = derive_course(kept, [Note(structure=new)])
        if course.stops:
            return
        for step in course.steps:
            lake.do(step, new)
        assert course.structure is not None
        kept = parse(course.structure.to_text())
        assert kept == course.structure
        agree(lake, kept)
        assert lake.types == {c.name: c.lake for c in kept.followed}


@given(chains())
def test_several_notes_at_once_give_the_same_as_one_by_one(chain: list[Structure]) -> None:
    kept = chain[0]
    for new in chain[1:]:
        single = derive_course(kept, [Note(structure=new)])
        if single.stops or single.structure is None:
            return
        kept = single.structure
    course = derive_course(chain[0], [Note(structure=new) for new in chain[1:]])
    assert course.structure == kept
    if course.stops:  # the table was renamed away and back, which the next law is about
        assert _leaves_its_name(chain)
        return
    lake = Lake.of(chain[0])
    for step in course.steps:
        lake.do(step, None)
    assert lake.types == {c.name: c.lake for c in kept.followed}
    assert (lake.table, lake.mode, set(lake.key)) == (kept.table, *_identity(kept))


@st.composite
def any_names(draw: st.DrawFn) -> list[Structure]:
    """Draw the same columns under names that differ in Postgres, but may clash in the lake."""
    numbers = draw(st.lists(st.integers(1, 4), min_size=1, unique=True))
    found = []
    for _ in range(draw(st.integers(2, 4))):
        names = draw(st.permutations(ALIKE))
        columns = [column(n, names[n], "text") for n in sorted(numbers)]
        found.append(parse(note(*columns, identity="f")))
    return found


@pytest.mark.timeout(60, method="thread")  # an endless course would take all memory
@given(any_names(), st.sampled_from(["evolve", "ignore"]))
def test_names_that_clash_in_the_lake_stop_and_others_are_followed(
    chain: list[Structure], policy: SchemaPolicy
) -> None:
    course = derive_course(chain[0], [Note(structure=new) for new in chain[1:]], policy=policy)
    alike = any(_refused(new) for new in chain[1:])
    event("alike" if alike else "told apart")
    assert bool(course.stops) == alike
    if not alike and not _refused(chain[0]):
        lake = Lake.of(chain[0])
        for step in course.steps:
            lake.do(step, chain[-1])
        agree(lake, chain[-1])


def _refused(structure: Structure) -> bool:
    return any(column_refusals(structure.table, [column.name for column in structure.followed]))


@given(chains(), st.data())
def test_a_table_stops_if_events_may_have_gone_to_another_topic(
    chain: list[Structure], data: st.DataObject
) -> None:
    """Every note counts, not only the last one."""
    seldom = st.integers(0, 5).map(lambda number: number == 0)
    notes = [
        Note(structure=new, unpublished=data.draw(seldom), unnoted=data.draw(seldom))
        for new in chain[1:]
    ]
    course = derive_course(chain[0], notes)
    event("away" if _leaves_its_name(chain) else "stays")
    if any(note.unpublished or note.unnoted for note in notes):
        assert course.stops
    if _leaves_its_name(chain):
        assert course.stops or any(isinstance(step, RenameTable) for step in course.steps)


def _leaves_its_name(chain: list[Structure]) -> bool:
    return any(structure.table != chain[0].table for structure in chain)


def _identity(structure: Structure) -> tuple[TableMode | str, set[str]]:
    mode = structure.mode(append=False)
    return mode, set(structure.key) if mode is TableMode.KEYED else set()


@given(chains())
def test_ignored_changes_leave_the_other_columns_right(chain: list[Structure]) -> None:
    kept, lake = chain[0], Lake.of(chain[0])
    size = len(lake.types)
    for new in chain[1:]:
        course = derive_course(kept, [Note(structure=new)], policy="ignore")
        if course.stops or any(_collides(lake, step) for step in course.steps):
            return
        for step in course.steps:
            lake.do(step, new)
        assert len(lake.types) == size
        assert course.structure is not None
        kept = parse(course.structure.to_text())
        assert {c.name: c.number for c in kept.followed}.items() <= lake.numbers.items()


def _collides(lake: Lake, step: Step) -> bool:
    """Return whether a new name clashes with a column that only the source has dropped."""
    taken = {name.lower() for name in lake.types}
    return isinstance(step, RenameColumn) and step.new.lower() in taken - {step.old.lower()}


@given(pairs)
def test_the_policy_stop_stops_at_any_change(pair: tuple[Structure, Structure]) -> None:
    old, new = pair
    found = derive_course(old, [Note(structure=new)], policy="stop").steps
    assert bool(found) == bool(derive_steps(old, new))
    assert all(isinstance(step, Stop) for step in found)


@given(pairs, st.booleans())
def test_a_guess_is_right_or_a_stop(pair: tuple[Structure, Structure], later: bool) -> None:
    """The connector writes by the second structure; the catalogue may have one more column."""
    old, then = pair
    now = then
    if later:
        number = max(*old.numbered(), *then.numbered()) + 1
        late = parse(note(column(number, "late", "text"))).columns
        now = replace(then, columns=(*then.columns, *late))
    course = guess_course(old, [Column(c.name, c.lake) for c in then.followed], now)
    event("stopped" if course.stops else "followed")
    if course.stops:
        return
    lake = Lake.of(old)
    for step in course.steps:
        lake.do(step, then)
    agree(lake, then)


@given(pairs)
def test_a_guess_equals_what_the_trigger_would_note(
    pair: tuple[Structure, Structure],
) -> None:
    old, new = pair
    guessed = guess_course(old, [Column(c.name, c.lake) for c in new.followed], new)
    if not guessed.stops:
        assert guessed == derive_course(old, [Note(structure=new)])
