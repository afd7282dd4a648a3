"""What operators are told of late rows."""

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from cdc.derive.late_rows.lateness import lateness_at
from cdc.errors import CdcError
from cdc.lake.records.ledger import Ledger, LedgerRow
from tests.unit.client.derived.test_asked import Asked
from tests.unit.derive.late.changing import Changing, Did, hours
from tests.unit.derive.late.logs import at

NOW = at("12:10")
DID = [
    Did(NOW, [(None, (1, 10, at("12:10"))), (None, (3, 1, None)), (None, (4, 1, NOW + 60))]),
    Did(NOW, [(None, (2, 5, at("11:45")))]),
]
WATERMARK = "1970-01-01 12:00:00+00:00"
Publish = Callable[..., LedgerRow]


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


@pytest.fixture
def publish(asked: Asked) -> Publish:
    """Publishes two cuts of a table with this policy, or more; returns the last."""

    def published(policy: str, more: Sequence[Did] = ()) -> LedgerRow:
        changing = Changing(asked.folder, [*DID, *more])
        text = hours(more=f", policy: {policy}")
        asked.define(seen=text)
        with closing(changing.keep(text)) as kept:
            rows = [changing.publish(kept, upto) for upto in range(1, 3 + len(more))]
        for row in rows:
            Ledger(f"{asked.folder}/lake/_wal2lake/ledger").append(row)
        return rows[-1]

    return published


def test_the_counts_are_listed(asked: Asked, publish: Publish) -> None:
    row = publish("keep")

    rows, seen = json.loads(asked.run("list", "--json"))

    told = {"watermark": WATERMARK, "late": 1, "future": 1, "no_time": 1}
    assert (rows["lateness"], seen["lateness"]) == (None, told)
    said = f"watermark {WATERMARK}, 1 late, 1 future, 1 without time"
    assert str(lateness_at(row)["marts.seen"]) == said


def test_an_older_cut_has_its_own_watermark(asked: Asked, publish: Publish) -> None:
    publish("keep", [Did(NOW + 60, [(None, (5, 1, NOW + 60))])])
    first, *_ = Ledger(f"{asked.folder}/lake/_wal2lake/ledger").rows()

    told = lateness_at(first)["marts.seen"]
    assert (told.watermark, told.late) == (WATERMARK, 0)
    assert asked.json("verify", "--at", "1")["equal"] is True
    finals = asked.json("preview", "marts.seen", "--at", "1")["rows"]
    assert [row["_final"] for row in finals] == [False, False]


def test_late_rows_are_shown(asked: Asked, publish: Publish) -> None:
    publish("aside")

    (row,) = asked.json("late", "marts.seen")["rows"]

    assert {name: row[name] for name in ("id", "n", "_op", "_effect", "_cut", "_offset")} == {
        "id": 2,
        "n": 5,
        "_op": "c",
        "_effect": "left out",
        "_cut": 2,
        "_offset": 1000,
    }
    assert "at cut 2" in asked.run("late", "marts.seen")


def test_a_table_without_late_rows_says_how_to_have_them(asked: Asked, publish: Publish) -> None:
    publish("keep")
    asked.define(other="SELECT id FROM shop.events")

    with pytest.raises(CdcError, match=r"marts\.other has no late rows"):
        asked.run("late", "marts.other")


@pytest.mark.parametrize("policy", ["keep", "aside"])
def test_check_preview_and_verify_know_what_is_final(
    asked: Asked, publish: Publish, policy: str
) -> None:
    publish(policy)

    rows, seen = asked.json("check")["tables"]
    assert rows["columns"].keys() >= {"id", "n", "ts", "_effect", "_window_start"}
    assert seen["columns"]["_final"] == "BOOLEAN"
    shown = asked.json("preview", "marts.seen")["rows"]
    finals = {row["window_start"][11:16]: row["_final"] for row in shown}
    late = {"11:00": True} if policy == "keep" else {}
    assert finals == {**late, "12:00": False, "13:00": False}
    assert asked.json("verify")["equal"] is True
    assert [one["table"] for one in asked.json("verify")["tables"]] == ["marts.seen"]


def test_the_source_is_not_asked_for_what_only_the_log_knows(
    asked: Asked, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = publish("aside")

    (verdict,) = asked.by_a_source(row, monkeypatch).tables

    assert verdict.reason == (
        "the source does not know which rows of marts.seen are late: verify it locally"
    )
