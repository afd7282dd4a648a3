"""What operators are told when they admit late rows, and what is refused."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import cdc
from cdc.client.derived import admit
from cdc.errors import CdcError
from cdc.lake.records.ledger import Ledger
from cdc.source.server import barrier
from cdc.state.admissions import Admissions, admissions
from cdc.tables import TableId
from tests.unit.client.derived.test_asked import Asked
from tests.unit.derive.late.changing import Changing, Did, hours
from tests.unit.derive.late.logs import at

NOW = at("12:10")
LATE = (2, 5, at("11:45"))
MORE = (3, 7, at("11:50"))
DID = [Did(NOW, [(None, (1, 10, NOW))]), Did(NOW, [(None, LATE), (None, MORE)])]
ROWS = TableId("marts", "seen__late")


class Job:
    """Stands for a job that publishes a cut whenever the source moves."""

    def __init__(self, asked: Asked, policy: str, did: Sequence[Did] = DID) -> None:
        text = hours(more=f", policy: {policy}")
        asked.define(seen=text)
        self.asked, self.changing = asked, Changing(asked.folder, did)
        self.kept = self.changing.keep(text)
        self.ledger = Ledger(f"{asked.folder}/lake/_wal2lake/ledger")
        for upto in range(1, 1 + len(did)):
            self.publish(upto)

    def publish(self, upto: int) -> None:
        self.ledger.append(self.changing.publish(self.kept, upto))

    def move(self, *_: object) -> None:
        self.publish(self.changing.log.upto)


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


@pytest.fixture
def waiting(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> Admissions:
    """Let the command ask where the job of the test looks."""

    @contextmanager
    def connected(_: object) -> Iterator[None]:
        yield

    endpoints = SimpleNamespace(endpoints=SimpleNamespace(source_url=""))
    monkeypatch.setattr(admit, "resolve", lambda _: endpoints)
    monkeypatch.setattr(admit, "connect", connected)
    monkeypatch.setattr(admit, "admissions", lambda _: admissions(asked.folder))
    return admissions(asked.folder)


def admitted(asked: Asked, where: str, *more: str) -> str:
    said = asked.run("late", "marts.seen", "--admit", where, "--reason", "a clock", *more)
    return said.splitlines()[-1]  # before it is what the job logs


def test_the_command_waits_for_the_cut_that_counts_the_rows(
    asked: Asked, waiting: Admissions, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(asked, "aside")
    monkeypatch.setattr(barrier, "touch", job.move)

    with closing(job.kept):
        said = admitted(asked, "id = 2 AND _effect = 'left out'")
        again = admitted(asked, "id = 2 AND _effect = 'left out'")
        rest = admitted(asked, "n > 0", "--json")

    assert said == "marts.seen: 1 late rows count from cut 3 on"
    assert again == "marts.seen: all 1 late rows count already; nothing was changed"
    assert rest == '{"cut": 4, "rows": 1, "matching": 2}'
    assert waiting.of(ROWS) == []


def test_what_was_admitted_is_listed_with_when_and_why(
    asked: Asked, waiting: Admissions, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert waiting.of(ROWS) == []
    job = Job(asked, "aside")
    monkeypatch.setattr(barrier, "touch", job.move)
    with closing(job.kept):
        admitted(asked, "id = 2")

    rows = asked.json("late", "marts.seen")["rows"]

    assert [(row["id"], row["_effect"], row["_cut"], row["_reason"]) for row in rows] == [
        (2, "left out", 2, None),
        (3, "left out", 2, None),
        (2, "admitted", 3, "a clock"),
    ]
    assert [row["_admitted_at"] is None for row in rows] == [True, True, False]


def test_older_cuts_are_without_and_newer_ones_with_what_was_admitted(
    asked: Asked, waiting: Admissions, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert waiting.of(ROWS) == []
    job = Job(asked, "aside")
    monkeypatch.setattr(barrier, "touch", job.move)
    with closing(job.kept):
        admitted(asked, "id = 2")
        job.move()

    counted = {}
    for cut in "234":
        assert asked.json("verify", "--at", cut)["equal"] is True
        rows = asked.json("preview", "marts.seen", "--at", cut)["rows"]
        counted[cut] = {row["window_start"][11:16]: row["rows"] for row in rows}
    assert counted == {"2": {"12:00": 1}, **{cut: {"11:00": 1, "12:00": 1} for cut in "34"}}


@pytest.mark.parametrize(
    ("where", "said", "remedy"),
    [
        ("idd = 2", "--admit:1:1: late rows have no column idd", "did you mean id?"),
        ("id = 2 AND\n  nn = 1", "--admit:2:3: late rows have no column nn", "did you mean n?"),
        ("e.id = 2", "--admit:1:1: the column id has a table", "write id alone"),
        ("id = 99", "--admit: no late row of marts.seen at cut 2 meets id = 99", "lists them"),
        ("ts > now()", r"--admit:1:6: .*now.* refused", ""),
        ("id IN (SELECT 1)", r"--admit:1:\d+: a subquery is refused", "behind WHERE"),
        ("id = 2 ORDER BY 1", "--admit:1:1: it is more than one condition", "behind WHERE"),
        ("id = 2; DROP TABLE x", "--admit:1:9: a second statement begins here", ""),
        ("id = (", "--admit:1:\\d+: it cannot be parsed", ""),
        (" ", "--admit:1:1: there is no condition", "such as id = 7"),
        ("n", "--admit: it is BIGINT, which is no condition", "compare"),
        ("sum(n) > 1", "--admit: WHERE clause cannot contain aggregates", "correct"),
    ],
)
def test_a_condition_that_is_not_valid_is_refused(
    asked: Asked, waiting: Admissions, where: str, said: str, remedy: str
) -> None:
    with closing(Job(asked, "aside").kept), pytest.raises(CdcError, match=said) as refused:
        admitted(asked, where)

    assert remedy in refused.value.remedy
    assert waiting.of(ROWS) == []


def test_a_table_that_counts_its_late_rows_has_none_to_admit(
    asked: Asked, waiting: Admissions
) -> None:
    with closing(Job(asked, "keep").kept), pytest.raises(CdcError) as refused:
        admitted(asked, "id = 2")

    assert "policy: keep counts the late rows of marts.seen already" in refused.value.message
    assert refused.value.message.startswith(str(asked.folder / "derived" / "marts.seen.sql"))
    assert waiting.of(ROWS) == []


def test_other_tables_are_refused(asked: Asked, waiting: Admissions) -> None:
    asked.define(other="SELECT id FROM shop.events")
    with closing(Job(asked, "aside").kept):
        for name, said in (("marts.nope", "is not a derived table"), ("marts.other", "no late")):
            with pytest.raises(CdcError, match=said):
                asked.run("late", name, "--admit", "TRUE", "--reason", "a clock")
    assert waiting.of(ROWS) == []


@pytest.mark.parametrize("reason", ["", "  ", "x" * 1001])
def test_a_reason_is_needed(asked: Asked, waiting: Admissions, reason: str) -> None:
    with (
        closing(Job(asked, "aside").kept),
        pytest.raises(CdcError, match=r"the reason is (missing|longer)") as refused,
    ):
        asked.run("late", "marts.seen", "--admit", "id = 2", "--reason", reason)

    assert "--reason" in refused.value.remedy
    assert waiting.of(ROWS) == []


def test_a_reason_without_a_condition_is_refused(asked: Asked) -> None:
    with closing(Job(asked, "aside").kept), pytest.raises(CdcError, match="--reason is for rows"):
        asked.run("late", "marts.seen", "--reason", "a clock")


def test_a_reader_of_changes_sees_which_of_them_was_admitted(
    asked: Asked, waiting: Admissions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cut that admits a row has a new row too, and a later one corrects the window again."""
    assert waiting.of(ROWS) == []
    early, new = (4, 1, at("11:30")), (5, 1, at("13:30"))
    did = [Did(NOW, [(None, early)]), *DID, Did(NOW + 90, [(None, new)])]
    job = Job(asked, "aside", did)
    monkeypatch.setattr(barrier, "touch", lambda *_: job.publish(4))
    with closing(job.kept):
        job.changing.log.upto = 3
        admitted(asked, "id = 2")
        job.move()

    def changed(since: int, until: int | None = None) -> list[tuple[object, ...]]:
        rows = cdc.changes("marts.seen", since=since, at=until, lake=asked.folder / "lake")
        names = ("window_start", "rows", "_cdc_change", "_cdc_admitted")
        return sorted(
            (f"{row[names[0]]:%H:%M}", *(row[name] for name in names[1:]))
            for row in rows.to_pylist()
        )

    corrected = [("11:00", 1, "removed", "a clock"), ("11:00", 2, "added", "a clock")]
    assert changed(4) == corrected
    assert changed(5) == []
    assert [row[-1] for row in changed(1, 3)] == [None] * 3
    others = [row for row in changed(1) if row[0] != "11:00"]
    assert [row[-1] for row in others] == [None] * len(others)
