"""What operators are told of late rows."""

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from cdc.derive.late_rows.lateness import lateness_at
from cdc.errors import CdcError
from cdc.lake.records.ledger import Ledger, LedgerRow
from tests.unit.client.derived.test_asked import Asked
from tests.unit.derive.late.changing import Changing, Did, hours
from tests.unit.derive.late.logs import at
from tests.unit.derive.late.waiting import Did as Waited
from tests.unit.derive.late.waiting import Waiting, waiting
from tests.unit.derive.small_lake import SmallLake

NOW = at("12:10")
DID = [
    Did(NOW, [(None, (1, 10, at("12:10"))), (None, (3, 1, None)), (None, (4, 1, NOW + 60))]),
    Did(NOW, [(None, (2, 5, at("11:45")))]),
]
WATERMARK = "1970-01-01 12:00:00+00:00"
TIMED = "TIMESTAMP WITH TIME ZONE"
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


@pytest.mark.parametrize("policy", ["keep", "aside"])
def test_check_preview_and_verify_know_who_waits(asked: Asked, policy: str) -> None:
    text = waiting(policy=policy)
    asked.define(seen=text)
    order, late = (None, (1, at("10:00"))), (None, (7, 1, at("10:10")))
    moves = [(None, (number, 99, at(minute))) for number, minute in ((2, "10:14"), (3, "10:15"))]
    lake = Waiting(asked.folder, [Waited(NOW, [moves[0]], [order]), Waited(NOW, moves[1:])])
    lake.did = [*lake.did, Waited(NOW, [late])]
    with closing(lake.keep(text)) as kept:
        for upto in (1, 2, 3):
            Ledger(f"{asked.folder}/lake/_wal2lake/ledger").append(lake.publish(kept, upto))

    rows, seen = asked.json("check")["tables"]
    assert (rows["columns"]["paid_at"], seen["columns"]["_final"]) == (TIMED, "BOOLEAN")
    shown = [asked.json("preview", "marts.seen", "--at", cut)["rows"] for cut in "123"]
    told = [[(row["payment"], row["_final"]) for row in one] for one in shown]
    assert told == [[(None, False)], [(None, True)], [(7 if policy == "keep" else None, True)]]
    assert [asked.json("verify", "--at", cut)["equal"] for cut in "123"] == [True] * 3


def test_a_column_that_is_no_time_is_refused(asked: Asked) -> None:
    asked.define(seen=waiting().replace("paid_at", "day").replace("placed_at", "day"))
    days = {
        name: pa.schema([("id", pa.int64()), ("order_id", pa.int64()), ("day", pa.date32())])
        for name in ("orders", "payments")
    }
    lake = SmallLake(asked.folder, days)
    lake.set(orders=[], payments=[])
    Ledger(f"{asked.folder}/lake/_wal2lake/ledger").append(lake.row())

    said = asked.run("check", expect=2)

    assert "late: shop.payments.day is DATE, which is no moment" in said


def test_the_source_is_not_asked_for_what_only_the_log_knows(
    asked: Asked, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = publish("aside")

    (verdict,) = asked.by_a_source(row, monkeypatch).tables

    assert verdict.reason == (
        "the source does not know which rows of marts.seen are late: verify it locally"
    )
