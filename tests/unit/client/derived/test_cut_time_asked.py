"""Test what operators see of a table that depends on ``cut_time()``, now and at earlier cuts."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from cdc.client.derived import verify as verification
from cdc.client.derived.at_source import refused_by_source
from cdc.config import load
from cdc.derive.definition.declared import declared
from cdc.errors import CdcError
from cdc.tables import TableId
from tests.unit.client.derived.test_asked import BY_WHO, Asked

SEEN: Final = "SELECT id, cut_time() AS seen FROM shop.orders"
OVER: Final = "SELECT max(seen) AS seen FROM marts.looks"
NOON: Final = datetime(2024, 1, 31, 12, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    """Return an installation with three cuts, of noon and the two hours after it."""
    asked = Asked(tmp_path)
    asked.define(looks=SEEN, over=OVER, by_who=BY_WHO)
    for hours in range(3):
        asked.lake.committed_at = NOON + hours * HOUR
        asked.publish(5)
    return asked


def seen(asked: Asked, *more: str) -> list[str]:
    return [row["seen"] for row in asked.json("preview", "marts.looks", *more)["rows"]]


def test_a_preview_has_the_time_of_the_cut_that_is_asked_for(asked: Asked) -> None:
    assert seen(asked) == ["2024-01-31 14:00:00+00:00"]
    assert seen(asked, "--at", "1") == ["2024-01-31 12:00:00+00:00"]
    assert seen(asked, "--at", "2024-01-31T13:30:00Z") == ["2024-01-31 13:00:00+00:00"]


@pytest.mark.parametrize("cut", ["1", "2", "3"])
def test_every_cut_is_verified_at_its_time(asked: Asked, cut: str) -> None:
    report = asked.json("verify", "--at", cut)

    assert [(one["rows"], one["equal"], one["reason"]) for one in report["tables"]] == [
        (1, True, "")
    ] * 3


def test_before_the_first_commit_a_preview_says_why_not(tmp_path: Path) -> None:
    asked = Asked(tmp_path)
    asked.define(looks=SEEN)
    asked.publish(5)

    with pytest.raises(CdcError, match="cut 1 has no commit, and cut_time") as error:
        seen(asked)

    assert error.value.remedy == "choose a later cut; wal2lake cuts lists them"
    (verdict,) = asked.json("verify", expect=1)["tables"]
    assert "the cut has no commit" in verdict["reason"]


def test_check_list_and_explain_name_it(asked: Asked) -> None:
    checked = {one["table"]: one for one in asked.json("check")["tables"]}
    timed = {name: one["time_dependent"] for name, one in checked.items()}
    assert timed == {"marts.looks": True, "marts.over": False, "marts.by_who": False}
    assert checked["marts.looks"]["columns"]["seen"] == "TIMESTAMP WITH TIME ZONE"
    said = " ".join(asked.run("check").split())
    assert "marts.looks depends on cut_time(): each cut calculates its whole query" in said

    listed: Any = asked.json("list")
    assert {one["table"]: one["time_dependent"] for one in listed} == timed
    assert asked.run("list").count("cut_time()") == 1

    lines = asked.run("explain", "marts.looks").splitlines()
    assert lines[0] == "marts.looks is whole: cut_time() differs at each cut"
    assert lines[1] == "  it depends on cut_time(): each cut calculates it, also if no row changes"
    assert asked.json("explain", "marts.looks")["time_dependent"] is True
    assert "cut_time" not in asked.run("explain", "marts.by_who")


def test_list_says_nothing_of_a_definition_that_is_not_kept_yet(asked: Asked) -> None:
    asked.define(looks="SELECT id FROM shop.orders", by_who=f"{SEEN} WHERE who IS NOT NULL")

    listed: Any = asked.json("list")

    assert not any(one["time_dependent"] for one in listed)


def test_check_knows_the_type_before_any_commit(tmp_path: Path) -> None:
    asked = Asked(tmp_path)
    asked.define(looks=SEEN, wrong="SELECT id, cut_time() + 1 AS x FROM shop.orders")
    asked.publish(5)

    checked = asked.json("check", expect=2)

    assert [one["table"] for one in checked["tables"]] == ["marts.looks"]
    (problem,) = checked["problems"]
    assert "TIMESTAMP WITH TIME ZONE" in problem["message"]


class Source:
    """Notes what a source is asked, and answers as it is told."""

    def __init__(self, *rows: tuple[object, ...]) -> None:
        self.asked: list[str] = []
        self.rows = rows

    @contextmanager
    def transaction(self) -> Iterator[None]:
        yield

    @contextmanager
    def cursor(self) -> Iterator["Source"]:
        yield self

    def execute(self, query: bytes) -> None:
        self.asked.append(query.decode())

    def __iter__(self) -> Iterator[tuple[object, ...]]:
        return iter(self.rows)


def test_the_source_gets_it_as_a_constant(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """So do the tables that are read by others, which are subqueries there."""
    source, row = Source((NOON + 2 * HOUR,)), asked.publish(5)

    @contextmanager
    def at_row(*_: object, **__: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(cut=row, connection=source)

    monkeypatch.setattr(verification, "moment", at_row)
    pipeline: Any = SimpleNamespace(config=load(asked.file))
    report = verification.verify_by_source(pipeline, ["marts.over"], timeout=1, tell=print)

    assert report.equal
    (query,) = source.asked
    assert "CAST('2024-01-31 14:00:00.000000+00:00' AS TIMESTAMPTZ)" in query
    assert "cut_time" not in query.lower()


def test_the_source_is_asked_for_the_meaning_of_a_definition_with_a_time(asked: Asked) -> None:
    source: Any = Source()
    found = declared(asked.folder / "derived", [TableId("shop", "orders")])

    assert not list(refused_by_source(source, found.definitions))

    assert len([one for one in source.asked if one.startswith("PREPARE")]) == 3
    assert not any("cut_time" in one.lower() for one in source.asked)
