"""Late rows that are admitted count from the next cut on, in one commit that says why."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from cdc.derive.keep import late_tables, reopening
from cdc.derive.keep.derived_tables import DerivedTables
from cdc.derive.late_rows import bringing
from cdc.derive.step.mark import USER_METADATA, facts_of
from cdc.failpoints import Failpoint
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.table.commit_info import commit_info
from cdc.state.admissions import admissions
from cdc.state.derived_requests import rebuilds
from cdc.tables import TableId
from tests.unit.derive.late.changing import Changing, Did, Values, defined, hours, time
from tests.unit.derive.late.logs import at
from tests.unit.derive.late.waiting import Did as Waited
from tests.unit.derive.late.waiting import Waiting, waiting
from tests.unit.derive.small_lake import rows_of

NOW = at("12:10")
ASIDE = hours(more=", policy: aside")
EMITTED = hours(more=", policy: aside", emit="\nemit: final")
SEEN = TableId("marts", "seen__late")
EARLY: Values = (9, 1, at("11:30"))
FIRST: Values = (1, 10, at("12:10"))
LATE: Values = (2, 5, at("11:45"))
OTHER: Values = (3, 7, at("11:50"))
TEN, ELEVEN = time(at("10:00")), time(at("11:00"))


def did(*changes: tuple[Values | None, Values | None]) -> Did:
    return Did(NOW, changes)


def inserted(*rows: Values) -> Did:
    return did(*((None, row) for row in rows))


def log(*more: Did) -> list[Did]:
    """Return a log whose second transaction makes the window of eleven final."""
    return [inserted(EARLY), inserted(FIRST), inserted(LATE, OTHER), *more]


def eleven(entry: DerivedEntry) -> tuple[int, int] | None:
    """Return how many rows the window of eleven has, and their total."""
    found = {row[0]: (row[2], int(row[3])) for row in rows_of(entry)}
    return found.get(ELEVEN)


def told(entry: DerivedEntry) -> list[tuple[Any, ...]]:
    """Return the late rows by id, then in order: their effect, cut and reason."""
    table = DeltaTable(entry.path, version=entry.version).to_pyarrow_table()
    names = ["id", "_offset", "_effect", "_cut", "_reason"]
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    return [(row[0], *row[2:]) for row in sorted(rows, key=lambda row: row[:3])]


def marks(entry: DerivedEntry) -> list[list[tuple[str, int]]]:
    """Return what the commits up to a version say of admissions, the oldest first."""
    commits = DeltaTable(entry.path).history()
    facts = [facts_of(one) for one in commits if int(one["version"]) <= entry.version]
    return [[(a["reason"], a["rows"]) for a in one.get("admitted", ())] for one in facts[::-1]]


@pytest.mark.parametrize("text", [ASIDE, EMITTED])
def test_an_admitted_row_is_counted_from_the_next_cut_on(tmp_path: Path, text: str) -> None:
    changing = Changing(tmp_path, log())
    with closing(changing.keep(text)) as kept:
        before = changing.cut(kept, 3)
        changing.admit("id = 2", seen=1, reason="the shop's clock was wrong")
        late, seen = changing.cut(kept, 3)
        assert admissions(tmp_path).of(SEEN) == []

    assert (eleven(before[1]), eleven(seen)) == ((1, 1), (2, 6))
    assert told(late) == [
        (2, "left out", 1, None),
        (2, "admitted", 2, "the shop's clock was wrong"),
        (3, "left out", 1, None),
    ]
    assert (seen.version, marks(seen)[-1]) == (
        before[1].version + 1,
        [("the shop's clock was wrong", 1)],
    )


def test_other_changes_of_the_cut_are_a_commit_without_the_reason(tmp_path: Path) -> None:
    new: Values = (4, 1, at("12:20"))
    changing = Changing(tmp_path, log(inserted(new)))
    with closing(changing.keep(ASIDE)) as kept:
        before = changing.cut(kept, 3)[1]
        changing.admit("id IN (2, 3)", seen=1)
        seen = changing.cut(kept, 4)[1]

    assert (eleven(seen), seen.version) == ((3, 13), before.version + 2)
    assert marks(seen)[-2:] == [[], [("a reason", 2)]]


def test_the_same_admission_once_more_changes_nothing(tmp_path: Path) -> None:
    changing = Changing(tmp_path, log())
    with closing(changing.keep(ASIDE)) as kept:
        changing.cut(kept, 3)
        changing.admit("id = 2", seen=1)
        first = changing.cut(kept, 3)
        changing.admit("id = 2", seen=2)
        again = changing.cut(kept, 3)

    assert [one.version for one in again] == [one.version for one in first]


def test_what_was_late_after_the_cut_that_was_seen_is_left_out(tmp_path: Path) -> None:
    new: Values = (4, 100, at("11:10"))
    changing = Changing(tmp_path, log(inserted(new)))
    with closing(changing.keep(ASIDE)) as kept:
        changing.cut(kept, 3)
        changing.cut(kept, 4)
        changing.admit("TRUE", seen=1)
        seen = changing.cut(kept, 4)[1]

    assert eleven(seen) == (3, 13)


@pytest.mark.parametrize("apart", [0, 1])
@pytest.mark.parametrize(
    ("later", "window", "noted"),
    [
        ((LATE, None), (2, 6), [("d", "kept", 5)]),
        ((LATE, (2, 50, at("11:46"))), (2, 6), [("u", "kept", 5), ("u", "left out", 50)]),
        ((LATE, (2, 50, at("12:46"))), (2, 6), [("u", "kept", 5)]),
        ((LATE, (2, 50, at("10:46"))), (2, 6), [("u", "kept", 5), ("u", "left out", 50)]),
    ],
)
def test_an_admitted_window_is_final_again(
    tmp_path: Path,
    later: tuple[Values, Values | None],
    window: tuple[int, int],
    noted: list[tuple[str, str, int]],
    apart: int,
) -> None:
    """What comes afterwards is late like any other event, and may be admitted too.

    It may be in the cut that admits the row, or in one ``apart``.
    """
    changing = Changing(tmp_path, log(did(later)))
    with closing(changing.keep(ASIDE)) as kept:
        changing.cut(kept, 3)
        changing.admit("id = 2", seen=1)
        for _ in range(apart):
            changing.cut(kept, 3)
        late, seen = changing.cut(kept, 4)
        changing.admit("id = 2", seen=2 + apart)
        last = changing.cut(kept, 4)[1]

    assert eleven(seen) == window
    rows = [row for row in rows_of(late) if row[0] == 2]
    assert (
        sorted(
            (row[3], row[4], row[1]) for row in rows if row[8] == 2 + apart and row[4] != "admitted"
        )
        == noted
    )
    moved = later[1] if later[1] is not None and _hour(later[1]) == ELEVEN else None
    assert eleven(last) == ((1, 1) if moved is None else (2, 1 + moved[1]))


def _hour(row: Values) -> object:
    assert row[2] is not None
    return time(row[2] // 60 * 60)


def test_a_row_that_left_its_final_window_is_gone_when_that_is_admitted(tmp_path: Path) -> None:
    changing = Changing(tmp_path, log(did((EARLY, None))))
    with closing(changing.keep(ASIDE)) as kept:
        before = changing.cut(kept, 4)[1]
        changing.admit("_effect = 'kept'", seen=1)
        seen = changing.cut(kept, 4)[1]

    assert (eleven(before), eleven(seen)) == ((1, 1), None)


@pytest.mark.parametrize("given_up", [0, 4])
def test_a_rebuild_keeps_what_was_admitted(tmp_path: Path, given_up: int) -> None:
    changing = Changing(tmp_path, log(did((LATE, (2, 6, at("11:40"))))))
    with closing(changing.keep(ASIDE)) as kept:
        changing.cut(kept, 3)
        changing.admit("id = 2", seen=1)
        changing.cut(kept, 3)
        before = changing.cut(kept, 4)
        changing.log.given_up = given_up
        for one in defined(ASIDE):
            rebuilds(tmp_path).ask(one.table)
        after = changing.cut(kept, 4)

    assert list(map(rows_of, after)) == list(map(rows_of, before))
    assert eleven(after[1]) == (2, 6)
    assert marks(after[1])[-1] == []


def test_another_rule_keeps_what_was_admitted(tmp_path: Path) -> None:
    """The log is judged anew, but what somebody has decided holds."""
    changing = Changing(tmp_path, log())
    with closing(changing.keep(ASIDE)) as kept:
        changing.cut(kept, 3)
        changing.admit("id = 2", seen=1)
        last = changing.cut(kept, 3)
    text = hours(allowed="5 minutes", more=", policy: aside")
    with closing(changing.keep(text, last=last)) as kept:
        late, seen = changing.cut(kept, 3)
        for one in defined(text):
            rebuilds(tmp_path).ask(one.table)
        again = changing.cut(kept, 3)

    assert (eleven(seen), eleven(again[1])) == ((2, 6), (2, 6))
    assert [row[:2] for row in told(late)] == [(2, "left out"), (2, "admitted"), (3, "left out")]


class Killed(BaseException):
    """The job is dead."""


POINTS = [
    Failpoint(f"{side}-{step}")
    for step in ("admit-commit", "admit-end", "windows-reopen")
    for side in ("before", "after")
]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("more", [0, 1])
def test_a_crash_between_the_steps_neither_loses_nor_doubles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: Failpoint, more: int
) -> None:
    """The next job may have more of the log in the same cut."""
    changing = Changing(tmp_path, log(inserted((4, 1, at("12:20"))), did((LATE, None))))
    with closing(changing.keep(ASIDE)) as kept:
        published = changing.cut(kept, 3)
        changing.admit("id = 2", seen=1)
        with killed_at(monkeypatch, point), pytest.raises(Killed):
            kill(changing, kept, 4)
    changing.lake.cut -= 1
    with closing(changing.keep(ASIDE, last=published)) as kept:
        late, seen = changing.cut(kept, 4 + more)
        after = changing.cut(kept, 4 + more)
        assert admissions(tmp_path).of(SEEN) == []

    assert eleven(seen) == (2, 6)
    assert [row[:2] for row in told(late)].count((2, "admitted")) == 1
    assert [one.version for one in after] == [late.version, seen.version]
    assert sum(bool(one) for one in marks(seen)) == 1


def test_a_crash_at_one_step_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each job gets past the step at which the last one died."""
    changing = Changing(tmp_path, log(inserted((4, 1, at("12:20"))), did((LATE, None))))
    with closing(changing.keep(ASIDE)) as kept:
        published = changing.cut(kept, 3)
    changing.admit("id = 2", seen=1)
    for point in POINTS:
        with (
            closing(changing.keep(ASIDE, last=published)) as kept,
            killed_at(monkeypatch, point),
            pytest.raises(Killed),
        ):
            kill(changing, kept, 4)
        changing.lake.cut = 1
    with closing(changing.keep(ASIDE, last=published)) as kept:
        late, seen = changing.cut(kept, 4)

    assert eleven(seen) == (2, 6)
    assert [row[:2] for row in told(late)].count((2, "admitted")) == 1
    assert [one for one in marks(seen) if one] == [[("a reason", 1)]]


def kill(changing: Changing, kept: DerivedTables, upto: int) -> None:
    """Bring a cut until the job dies."""
    changing.publish(kept, upto)
    changing.publish(kept, upto)  # a thread's end shows at the next cut


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, wanted: Failpoint) -> Iterator[None]:
    def reach(point: Failpoint) -> None:
        if point is wanted:
            raise Killed

    with monkeypatch.context() as patched:
        for module in (bringing, late_tables, reopening):
            patched.setattr(module, "reach", reach)
        yield


def test_a_table_from_before_there_were_admissions_gets_their_columns(tmp_path: Path) -> None:
    changing = Changing(tmp_path, log())
    with closing(changing.keep(ASIDE)) as kept:
        last = changing.cut(kept, 3)
    table = DeltaTable(last[0].path)
    mark = {USER_METADATA: str(commit_info(table)[USER_METADATA])}
    write_deltalake(
        last[0].path,
        table.to_pyarrow_table().drop_columns(["_admitted_at", "_reason"]),
        mode="overwrite",
        schema_mode="overwrite",
        commit_properties=CommitProperties(custom_metadata=mark),
    )
    with closing(changing.keep(ASIDE, last=last)) as kept:
        before = changing.cut(kept, 3)[1]
        changing.admit("id = 2", seen=1)
        late, seen = changing.cut(kept, 3)

    assert (eleven(before), eleven(seen)) == ((1, 1), (2, 6))
    assert [row[:2] for row in told(late)] == [(2, "left out"), (2, "admitted"), (3, "left out")]


def test_a_condition_that_fails_admits_nothing(tmp_path: Path) -> None:
    changing = Changing(tmp_path, log())
    with closing(changing.keep(ASIDE)) as kept:
        before = changing.cut(kept, 3)
        changing.admit("nothing = 1", seen=1)
        changing.admit("n % NULLIF(n, 0) = 0 AND id = 3", seen=1)
        after = changing.cut(kept, 3)

    assert (eleven(before[1]), eleven(after[1])) == ((1, 1), (2, 8))
    assert admissions(tmp_path).of(SEEN) == []


@pytest.mark.parametrize("cuts", [1, 4])
def test_a_payment_that_is_admitted_pays_its_order(tmp_path: Path, cuts: int) -> None:
    """An order of 10:00 waits until 10:15; then a payment of 10:10 comes, and goes again."""
    order, payment = (1, at("10:00")), (7, 1, at("10:10"))
    moves = [(None, (n, 99, at(minute))) for n, minute in ((2, "10:14"), (3, "10:15"))]
    later = (8, 1, at("10:05"))
    did = [
        Waited(NOW, moves[:1], [(None, order)]),
        Waited(NOW, moves[1:]),
        Waited(NOW, [(None, payment), (None, later)]),
        Waited(NOW, [(payment, None)]),
    ]
    text = waiting(policy="aside", emit="final")
    lake = Waiting(tmp_path, did)
    with closing(lake.keep(text)) as kept:
        unpaid = lake.cut(kept, 3)[1]
        lake.admit("id = 7", seen=1)
        paid = lake.cut(kept, 3)[1]
        for cut in range(cuts):
            gone = lake.cut(kept, 3 + (cut == cuts - 1))[1]
        lake.admit("id = 7", seen=2 + cuts)
        last = lake.cut(kept, 4)[1]
        for one in defined(text):
            rebuilds(tmp_path).ask(one.table)
        assert rows_of(lake.cut(kept, 4)[1]) == rows_of(last)

    assert [[row[2] for row in rows_of(one)] for one in (unpaid, paid, gone, last)] == [
        [None],
        [7],
        [7],
        [None],
    ]


def test_what_is_admitted_has_come_in_time(tmp_path: Path) -> None:
    """Another admission, of a row that has changed since, gives what there is now."""
    second, third, fourth = ((2, n, at("11:46")) for n in (50, 500, 5000))
    steps = [did((LATE, second)), did((second, third)), did((third, fourth))]
    changing = Changing(tmp_path, log(*steps))
    with closing(changing.keep(ASIDE)) as kept:
        changing.cut(kept, 4)
        changing.admit("id = 2", seen=1)
        first = changing.cut(kept, 4)[1]
        changing.admit("_effect = 'kept' OR n = 500", seen=2)
        late, same = changing.cut(kept, 5)
        more = changing.cut(kept, 6)[0]
        changing.admit("n = 500", seen=4)
        last = changing.cut(kept, 6)[1]

    assert [eleven(one) for one in (first, same, last)] == [(2, 51), (2, 51), (2, 5001)]
    assert told(more) == told(late)
    assert [row[:2] for row in told(late) if row[0] == 2][1:] == [
        (2, "admitted"),
        (2, "kept"),
        (2, "left out"),
    ]
