"""Commands on derived tables know histories too."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from cdc.cli.derived import derived
from cdc.client.derived import verify as verification
from cdc.client.derived.at_source import refused_by_source
from cdc.client.derived.explain import explain
from cdc.config import load
from cdc.derive.definition.declared import declared
from cdc.errors import CdcError
from cdc.lake.records.ledger import Ledger
from tests.events.source import TABLE
from tests.unit.derive.logged_lake import LoggedLake

PAST = "/* ---\nkind: history\ntable: public.toasty\ntrack: [n]\n--- */\n"


class Asked:
    """Makes an installation with a history, and perhaps other derived tables."""

    def __init__(self, folder: Path, **more: str) -> None:
        self.lake = LoggedLake(folder, {})
        self.file = folder / "wal2lake.yaml"
        self.file.write_text("source: {tables: [public.*]}\nlake: {path: lake}\nstate_dir: state\n")
        (folder / "derived").mkdir()
        for name, text in {"past": PAST, **more}.items():
            (folder / "derived" / f"marts.{name}.sql").write_text(text)
        self.ledger = Ledger(f"{folder}/lake/_wal2lake/ledger")
        self.definitions = declared(folder / "derived", [TABLE]).definitions

    def publish(self, n: int) -> None:
        """Publish a cut in which the row 1 has this number."""
        source, last = self.lake.source, self.ledger.last()
        source.insert(1, n, n) if not source.rows else source.update(1, n, {})
        self.lake.commit()
        row = self.lake.row()
        before = last.derived if last else ()
        with closing(self.lake.derived(*self.definitions, last=before)) as kept:
            self.ledger.append(replace(row, derived=kept.entries(row)))

    def verify_by_source(self, monkeypatch: pytest.MonkeyPatch) -> verification.DerivedReport:
        """Verify by a source that is at the newest cut, and that cannot be asked anything."""

        @contextmanager
        def at_row(*_: object, **__: object) -> Iterator[SimpleNamespace]:
            yield SimpleNamespace(cut=self.ledger.last(), connection=None)

        monkeypatch.setattr(verification, "moment", at_row)
        pipeline = SimpleNamespace(config=load(self.file))
        return verification.verify_by_source(pipeline, [], timeout=1, tell=print)  # type: ignore[arg-type]

    def run(self, *arguments: str, expect: int = 0) -> dict[str, Any]:
        ran = CliRunner().invoke(derived, [*arguments, "--json", "--config", str(self.file)])
        if isinstance(ran.exception, CdcError):
            raise ran.exception
        assert ran.exit_code == expect, ran.output
        found: dict[str, Any] = json.loads(ran.output)
        return found


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


def test_it_is_checked_and_explained(asked: Asked) -> None:
    asked.publish(1)

    (checked,) = asked.run("check")["tables"]

    assert (checked["table"], checked["inputs"]) == ("marts.past", ["public.toasty"])
    assert list(checked["columns"])[-11:-5] == [
        "_from_lsn", "_to_lsn", "_from", "_to", "_op", "_epoch",
    ]  # fmt: skip
    first, cost, why = explain(load(asked.file), "marts.past").lines
    assert first == "marts.past is kept by the events of its table"
    assert "scoped" not in cost
    assert why == "  it is built"


def test_at_every_cut_it_is_verified_by_its_table(asked: Asked) -> None:
    """With the version that the cut has, which knows no later LSN."""
    for n in (1, 2, 3):
        asked.publish(n)

    for cut in ("1", "2", "3"):
        (verdict,) = asked.run("verify", "--at", cut)["tables"]
        assert (verdict["equal"], verdict["rows"]) == (True, 1)


def test_a_version_that_is_missing_is_found(asked: Asked) -> None:
    for n in (1, 2):
        asked.publish(n)
    entry = asked.ledger.last()
    assert entry is not None
    (past,) = entry.derived
    DeltaTable(past.path).delete("_to_lsn IS NULL")
    version = DeltaTable(past.path).version()
    asked.ledger.append(replace(entry, cut=3, derived=(replace(past, version=version),)))

    (verdict,) = asked.run("verify", expect=1)["tables"]

    assert (verdict["missing"], verdict["extra"]) == (1, 0)


def test_no_query_gives_it(asked: Asked) -> None:
    asked.publish(1)

    with pytest.raises(CdcError, match=r"marts\.past is a history") as error:
        asked.run("preview", "marts.past")

    assert error.value.remedy == "read what the job has kept, by wal2lake sql or cdc.read"


def test_the_source_is_not_asked_for_it(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    asked.publish(1)
    found = asked.verify_by_source(monkeypatch)

    what = "the source cannot calculate histories, as marts.past is: verify it locally"
    assert [one.reason for one in found.tables] == [what]
    assert list(refused_by_source(None, asked.definitions)) == []  # type: ignore[arg-type]
