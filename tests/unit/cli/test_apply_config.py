"""``apply-config`` refuses before it changes anything, and has the job read the right tables."""

import io
import json
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cdc.capture.change_captured import CapturedChange
from cdc.cli import apply_config
from cdc.cli.show.follow_operation import new_operation
from cdc.client import config_change
from cdc.client.plan import Plan, PlanFinding, RemovedTable
from cdc.config import Config, Lake, Source
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger, LedgerRow, TableEntry
from cdc.lake.table.positions import UNREAD
from cdc.source.catalog.catalog import SourceTable
from cdc.source.server.finding import Finding
from cdc.state import operation_files as files
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.tables import TableId, TableMode

NOWHERE = Endpoints(source_url="", kafka=Broker(""), connect="", registry="")
NOTHING = Plan(
    begun=True,
    added=(),
    removed=(),
    unread=(),
    unfit=(),
    refused=(),
    makes_publication=False,
    publish=(),
    topics=(),
    settings=(),
    reload=(),
    restart=(),
)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Return a configuration with a live job: this process."""
    state = tmp_path / "state"
    state.mkdir()
    said = {"pid": os.getpid(), "state": "applying", "started_at": datetime.now(UTC).isoformat()}
    (state / "job.json").write_text(json.dumps(said))
    lake = Lake(path=str(tmp_path / "lake"))
    return Config(source=Source(tables=["shop.*"]), lake=lake, state_dir=state)


def refused(config: Config, plan: Plan, *purged: str) -> CdcError:
    with pytest.raises(CdcError) as caught:
        config_change.refuse_impossible(config, plan, purged)
    return caught.value


def test_an_unfit_configuration_is_refused_before_anything_changes(config: Config) -> None:
    config_change.refuse_impossible(config, NOTHING, [])

    unfit = PlanFinding(subject="shop.bad", message="has no key", remedy="add one")
    error = refused(config, replace(NOTHING, refused=(unfit,)))
    assert (error.kind, error.remedy) == (ErrorKind.SOURCE_NOT_READY, "add one")
    assert refused(config, replace(NOTHING, begun=False)).kind is ErrorKind.CONFLICT
    (config.state_dir / "job.json").unlink()
    assert refused(config, NOTHING).kind is ErrorKind.UNREACHABLE


def test_a_table_is_not_removed_while_an_operation_works_on_it(config: Config) -> None:
    operation = new_operation("replay", ["shop.a", "shop.b"], line="")
    files.ask(config.state_dir, operation)

    for error in (
        refused(config, replace(NOTHING, removed=(RemovedTable(table="shop.b", bytes=1),))),
        refused(config, NOTHING, "shop.a"),
    ):
        assert (error.kind, operation.id in error.message) == (ErrorKind.CONFLICT, True)
    config_change.refuse_impossible(config, NOTHING, ["shop.c"])


def test_a_second_call_at_a_time_is_refused(config: Config) -> None:
    with (
        config_change.only_apply_config(config.state_dir),
        pytest.raises(CdcError) as caught,
        config_change.only_apply_config(config.state_dir),
    ):
        pass
    assert caught.value.kind is ErrorKind.CONFLICT
    with config_change.only_apply_config(config.state_dir):
        pass


def source(name: str, unfit: Finding | None = None) -> SourceTable:
    return SourceTable(
        table=TableId("shop", name),
        oid=1,
        columns=(),
        key=("id",),
        mode=TableMode.KEYED,
        replica_identity="d",
        unfit=unfit,
    )


def publish(config: Config, cut: int, readings: dict[str, int]) -> None:
    entries = tuple(
        TableEntry(
            table=f"shop.{name}", path="", version=1, offset=1, state="streaming", reading=reading
        )
        for name, reading in readings.items()
    )
    now = datetime.now(UTC)
    row = LedgerRow(
        cut=cut,
        epoch=1,
        lsn=1,
        committed_at=now,
        published_at=now,
        transactions=1,
        tables=entries,
    )
    Ledger(ledger_path(config)).append(row)


def captured_change(*names: str, added: tuple[str, ...] = ()) -> CapturedChange:
    return CapturedChange(
        added=tuple(TableId("shop", name) for name in added),
        removed=(),
        tables=tuple(map(source, names)),
        reconfigured=False,
    )


def test_the_job_is_reloaded_until_a_cut_has_the_tables(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is also reloaded if an earlier call was killed after it had changed the connector."""
    reloads: list[int] = []

    def reload_job(*_: object) -> None:
        reloads.append(len(reloads) + 1)
        publish(config, 2, {"a": 0})

    monkeypatch.setattr(config_change, "reload_job", reload_job)
    monkeypatch.setattr(config_change, "change_captured", lambda *_: captured_change("a"))
    pipeline = Pipeline(config, NOWHERE)
    publish(config, 1, {"a": 0, "old": 0})

    assert config_change.take_over(pipeline, 5)[1]
    assert not config_change.take_over(pipeline, 5)[1]
    assert reloads == [1]


def test_a_job_that_publishes_nothing_is_a_timeout(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_change, "reload_job", lambda *_: None)
    monkeypatch.setattr(config_change, "change_captured", lambda *_: captured_change("a"))
    publish(config, 1, {"a": 0, "old": 0})

    with pytest.raises(CdcError) as caught:
        config_change.take_over(Pipeline(config, NOWHERE), 0.1)
    assert caught.value.kind is ErrorKind.TIMEOUT


def test_new_tables_and_those_of_an_interrupted_call_are_read(config: Config) -> None:
    publish(config, 1, {"a": 0, "back": 3, "half": UNREAD})
    gone = source("gone", Finding.error("shop.gone", "it was dropped in the source"))
    done = captured_change("a", "back", "half", "left", added=("back",))
    done = replace(done, tables=(gone, *done.tables))

    assert config_change.tables_to_read(config, done) == ["shop.back", "shop.half", "shop.left"]


@pytest.mark.parametrize(
    ("purged", "confirmed", "fine"),
    [
        ([], [], True),
        (["shop.a"], ["shop.a"], True),
        (["shop.a"], [], False),
        (["shop.a"], ["shop.b"], False),
        (["shop.a", "shop.b"], ["shop.a"], False),
        ([], ["shop.a"], False),
    ],
)
def test_without_a_terminal_each_purged_table_is_named_twice(
    purged: list[str], confirmed: list[str], *, fine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("shop.a\nshop.b\n"))
    if fine:
        apply_config._confirm(purged, confirmed)
        return
    with pytest.raises(CdcError) as caught:
        apply_config._confirm(purged, confirmed)
    assert caught.value.kind is ErrorKind.CONFIG


@pytest.mark.parametrize(("typed", "fine"), [("shop.a", True), ("shop", False), ("", False)])
def test_on_a_terminal_the_name_is_typed_to_confirm(
    typed: str, *, fine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(f"{typed}\n"))
    if fine:
        apply_config._confirm(["shop.a"], [])
        return
    with pytest.raises(CdcError) as caught:
        apply_config._confirm(["shop.a"], [])
    assert "nothing was changed" in caught.value.message
