"""What operators ask about derived tables, answered from a lake without any server."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from cdc.cli.derived import derived
from cdc.client.derived import verify as verification
from cdc.client.derived.verify import DerivedReport
from cdc.config import load
from cdc.derive.keep.open_derived import open_derived
from cdc.errors import CdcError
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.tables import TableId
from tests.unit.derive.small_lake import SmallLake

ORDERS = pa.schema([("id", pa.int64()), ("who", pa.string()), ("amount", pa.decimal128(10, 2))])
BY_WHO = "SELECT who, sum(amount) AS total FROM shop.orders GROUP BY who"
RICH = "SELECT count(*) AS n FROM marts.by_who WHERE total > 10"


class Asked:
    """An installation whose job has published one cut after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = SmallLake(folder, {"orders": ORDERS})
        self.file = folder / "wal2lake.yaml"
        patient = "derived: {seconds: 60}\n"  # on a machine that may be busy
        self.file.write_text(
            f"source: {{tables: [shop.*]}}\nlake: {{path: lake}}\nstate_dir: state\n{patient}"
        )

    def define(self, **queries: str) -> None:
        (self.folder / "derived").mkdir(exist_ok=True)
        for name, query in queries.items():
            (self.folder / "derived" / f"marts.{name}.sql").write_text(query)

    def publish(self, *amounts: int) -> LedgerRow:
        rows = [{"id": i, "who": "a", "amount": Decimal(a)} for i, a in enumerate(amounts)]
        self.lake.set(orders=rows)
        config, ledger = load(self.file), Ledger(f"{self.folder}/lake/_wal2lake/ledger")
        last, row = ledger.last(), self.lake.row()
        with closing(
            open_derived(config, [TableId("shop", "orders")], last.derived if last else ())
        ) as tables:
            row = replace(row, derived=tables.entries(row))
        ledger.append(row)
        return row

    def run(self, *arguments: str, expect: int = 0) -> str:
        ran = CliRunner().invoke(derived, [*arguments, "--config", str(self.file)])
        if isinstance(ran.exception, CdcError):
            raise ran.exception
        assert ran.exit_code == expect, ran.output
        return ran.output

    def json(self, *arguments: str, expect: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run(*arguments, "--json", expect=expect))
        return found

    def by_a_source(self, row: LedgerRow, monkeypatch: pytest.MonkeyPatch) -> DerivedReport:
        """Return what is said at the cut of ``row`` with a source that must not be asked."""

        @contextmanager
        def at_row(*_: object, **__: object) -> Iterator[SimpleNamespace]:
            yield SimpleNamespace(cut=row, connection=None)

        monkeypatch.setattr(verification, "moment", at_row)
        pipeline = SimpleNamespace(config=load(self.file))
        return verification.verify_by_source(pipeline, [], timeout=1, tell=print)  # type: ignore[arg-type]


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


def test_check_names_file_line_column_and_remedy(asked: Asked) -> None:
    asked.publish(1)
    asked.define(
        by_who=BY_WHO, wrong="SELECT id\nFROM shop.ordrs", types="SELECT nope FROM shop.orders"
    )

    checked = asked.json("check", expect=2)

    problems = {Path(str(p["file"])).name: p for p in checked["problems"]}
    assert problems["marts.wrong.sql"]["line"] == 2
    assert problems["marts.wrong.sql"]["message"] == "no table shop.ordrs"
    assert problems["marts.wrong.sql"]["remedy"] == "did you mean shop.orders?"
    assert "nope" in problems["marts.types.sql"]["message"]
    assert [t["table"] for t in checked["tables"]] == ["marts.by_who"]


def test_check_prints_the_columns_and_their_types(asked: Asked) -> None:
    asked.publish(1)
    asked.define(by_who=BY_WHO, rich=RICH)

    (by_who, rich) = asked.json("check")["tables"]

    assert by_who["columns"] == {"who": "VARCHAR", "total": "DECIMAL(38,2)"}
    assert (rich["columns"], rich["inputs"]) == ({"n": "BIGINT"}, ["marts.by_who"])
    assert "total decimal(38,2)" in " ".join(asked.run("check").split())


def test_check_says_what_it_can_before_the_first_cut(asked: Asked) -> None:
    asked.define(by_who=BY_WHO)

    assert asked.json("check")["problems"] == []


def test_preview_calculates_and_writes_nothing(asked: Asked) -> None:
    asked.publish(5, 7)
    asked.publish(5)
    asked.define(by_who=BY_WHO)

    assert asked.json("preview", "marts.by_who")["rows"] == [{"who": "a", "total": "5.00"}]
    assert asked.json("preview", "marts.by_who", "--at", "1")["rows"] == [
        {"who": "a", "total": "12.00"}
    ]
    assert not DeltaTable.is_deltatable(f"{asked.folder}/lake/marts/by_who")


def test_preview_of_no_definition_names_those_there_are(asked: Asked) -> None:
    asked.publish(5)
    asked.define(by_who=BY_WHO)

    with pytest.raises(CdcError, match=r"marts\.nobody is not a derived table") as error:
        asked.run("preview", "marts.nobody")

    assert error.value.remedy == "choose one of: marts.by_who"


def test_verify_finds_a_row_that_somebody_changed(asked: Asked) -> None:
    asked.define(by_who=BY_WHO, rich=RICH)
    asked.publish(5, 7)
    assert asked.json("verify")["equal"] is True
    row = asked.publish(5, 8)
    (by_who, _) = row.derived
    table = DeltaTable(by_who.path)
    table.update({"total": "1"})
    changed = [
        replace(one, version=table.version()) if one == by_who else one for one in row.derived
    ]
    Ledger(f"{asked.folder}/lake/_wal2lake/ledger").append(
        replace(row, cut=row.cut + 1, derived=tuple(changed))
    )

    report = asked.json("verify", "marts.by_who", expect=1)

    assert report["tables"] == [
        {"table": "marts.by_who", "rows": 1, "missing": 1, "extra": 1, "reason": "", "equal": False}
    ]
    assert asked.json("verify", "--at", str(row.cut))["equal"] is True


def test_a_flagged_table_is_not_called_equal(asked: Asked) -> None:
    asked.define(by_who=BY_WHO)
    asked.lake.states["orders"] = "stopped"
    asked.publish(5)

    (verdict,) = asked.json("verify", expect=1)["tables"]

    assert verdict["reason"] == (
        "marts.by_who equals its query at cut 1, but over rows that differ: "
        "its input shop.orders is stopped: a reason"
    )


def test_an_invalid_definition_stops_its_table_and_those_over_it(asked: Asked) -> None:
    asked.define(by_who=BY_WHO, rich=RICH, other="SELECT count(*) AS n FROM shop.orders")
    asked.publish(5)
    asked.define(by_who="SELECT now() AS t FROM shop.orders")

    found = {one.table: one for one in asked.publish(6).derived}

    assert found["marts.other"].state == "streaming"
    assert found["marts.by_who"].state == found["marts.rich"].state == "stopped"
    assert (found["marts.by_who"].version, found["marts.by_who"].at_cut) == (0, 1)
    assert "marts.by_who.sql:1:" in found["marts.by_who"].reason
    assert "its input marts.by_who is refused" in found["marts.rich"].reason
    assert "stopped" in asked.run("list")


def test_a_table_is_paused_and_resumed(asked: Asked) -> None:
    asked.define(by_who=BY_WHO)
    asked.publish(5)
    asked.run("pause", "marts.by_who")
    (paused,) = asked.publish(6).derived
    asked.run("resume", "marts.by_who")
    (resumed,) = asked.publish(6).derived

    assert (paused.state, paused.at_cut, resumed.state) == ("lagging", 1, "streaming")
    with pytest.raises(CdcError, match="is not paused"):
        asked.run("resume", "marts.by_who")


def test_only_a_table_that_is_derived_no_more_can_be_dropped(asked: Asked) -> None:
    asked.define(by_who=BY_WHO)
    asked.publish(5)
    path = asked.folder / "lake" / "marts" / "by_who"

    def refused(name: str, *more: str) -> str:
        with pytest.raises(CdcError) as error:
            asked.run("drop", name, *more)
        assert path.exists()
        return error.value.message

    confirmed = ("--confirm", "marts.by_who")
    assert "is not confirmed" in refused("marts.by_who")
    assert "is defined in" in refused("marts.by_who", *confirmed)
    (asked.folder / "derived" / "marts.by_who.sql").unlink()
    assert refused("marts.by_who", *confirmed) == "the newest cut has marts.by_who"
    assert "has shop.orders" in refused("shop.orders", "--confirm", "shop.orders")
    asked.publish(6)
    assert "no derived table" in refused("marts.other", "--confirm", "marts.other")

    asked.run("drop", "marts.by_who", *confirmed)

    assert not DeltaTable.is_deltatable(str(path))
    assert not list(path.glob("*"))
