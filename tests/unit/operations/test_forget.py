"""A table is refused of which something would be left, and the command wants the table's name."""

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdc.cli.forget import forget
from cdc.config import Config, Lake, Source
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import Ledger, LedgerRow, TableEntry
from cdc.lake.upkeep.held import held
from cdc.operations.desk.context import JobContext
from cdc.operations.desk.reporter import Reporter
from cdc.operations.forget import waits
from cdc.operations.forget.refusals import refuse, refuse_unsettled
from cdc.state.operation import OperationState, Progress
from cdc.tables import TableId, TableMode, TableState
from tests.unit.operations.cuts import cut_of

TABLE = TableId("shop", "places")
DERIVED = DerivedEntry(table="marts.sums", path="", version=1, state="streaming")


def cut(
    state: TableState = TableState.STREAMING, derived: tuple[DerivedEntry, ...] = ()
) -> LedgerRow:
    entry = TableEntry(
        table=str(TABLE), path="", version=1, offset=9, state=state.value, reason="r"
    )
    return cut_of((entry,), derived)


def job(
    lake: str, *, mode: TableMode = TableMode.KEYED, row: LedgerRow | None = None
) -> JobContext:
    """Return what of a job is looked at; ``row`` is the newest cut."""
    config = Config(source=Source(tables=["shop.*"]), lake=Lake(path=lake))
    if row is not None:
        Ledger(ledger_path(config)).append(row)
    live = SimpleNamespace(schema=SimpleNamespace(mode=mode))
    found: Any = SimpleNamespace(config=config, live=lambda _: live)
    return cast("JobContext", found)


def said(refused: JobContext) -> str:
    with pytest.raises(CdcError) as caught:
        refuse(refused, TABLE)
    return caught.value.message


def test_a_table_with_a_key_in_a_local_lake_is_not_refused(tmp_path: Path) -> None:
    refuse(job(str(tmp_path), row=cut()), TABLE)
    refuse_unsettled(cut(), TABLE)


def test_an_object_store_is_refused() -> None:
    assert "on a local disk only" in said(job("s3://bucket/lake"))


@pytest.mark.parametrize("mode", [TableMode.MULTISET, TableMode.APPEND])
def test_a_table_without_a_key_is_refused(tmp_path: Path, mode: TableMode) -> None:
    assert "shop.places has no key" in said(job(str(tmp_path), mode=mode, row=cut()))


def test_nothing_is_forgotten_before_the_first_cut(tmp_path: Path) -> None:
    assert "nothing is published yet" in said(job(str(tmp_path)))


def test_derived_tables_are_named(tmp_path: Path) -> None:
    assert "marts.sums" in said(job(str(tmp_path), row=cut(derived=(DERIVED,))))


def test_a_directory_that_was_moved_aside_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "_wal2lake" / "broken" / "op" / "shop"
    (folder / "other_places").mkdir(parents=True)
    refuse(job(str(tmp_path), row=cut()), TABLE)
    (folder / "places").mkdir()

    assert str(folder / "places") in said(job(str(tmp_path)))


@pytest.mark.parametrize("state", [one for one in TableState if one is not TableState.STREAMING])
def test_a_table_that_does_not_stream_is_refused(state: TableState) -> None:
    with pytest.raises(CdcError, match=f"shop.places is {state.value}"):
        refuse_unsettled(cut(state), TABLE)


def test_a_reader_of_older_versions_is_waited_for_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "HOLD_SECONDS", 0.0)
    (tmp_path / "_wal2lake").mkdir()
    running = Progress(id="o", state=OperationState.RUNNING)
    reporter, found = Reporter(tmp_path, running, threading.Event()), job(str(tmp_path))
    since = time.time()
    with held(str(tmp_path), since - 1), pytest.raises(CdcError, match="still reads") as caught:
        waits.await_no_hold(found, reporter, since)
    assert caught.value.kind is ErrorKind.CONFLICT
    with held(str(tmp_path), since + 1):
        waits.await_no_hold(found, reporter, since)


@pytest.mark.parametrize("confirmed", [None, "", "shop.other"])
def test_the_command_wants_the_name_of_the_table(tmp_path: Path, confirmed: str | None) -> None:
    path = tmp_path / "wal2lake.yaml"
    path.write_text("source: {tables: ['shop.*']}\nlake: {path: lake}\n")
    with pytest.raises(CdcError, match="not confirmed; nothing was changed"):
        forget(str(TABLE), confirm=confirmed, config=path)
    assert not (tmp_path / ".wal2lake" / "operations").exists()
