"""What ``apply-config`` refuses before it changes anything, and what it has the job read."""

import io
import json
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cdc.cli import apply_config
from cdc.cli.following import new_operation
from cdc.config import Config, Lake, Source
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.ledger import Ledger, LedgerRow, TableEntry
from cdc.operate import config_change
from cdc.operate import operation_files as files
from cdc.operate.plan import Plan, Refusal, RemovedTable
from cdc.source.catalog import SourceTable
from cdc.source.finding import Finding
from cdc.source.recapturing import Recaptured
from cdc.tables import TableId, TableMode

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
    """With a job that is alive: this process."""
    state = tmp_path / "state"
    state.mkdir()
    said = {"pid": os.getpid(), "state": "applying", "started_at": datetime.now(UTC).isoformat()}
    (state / "job.json").write_text(json.dumps(said))
    lake = Lake(path=str(tmp_path / "lake"))
    return Config(source=Source(tables=["shop.*"]), lake=lake, state_dir=state)


def refused(config: Config, plan: Plan, *purged: str) -> CdcError:
    with pytest.raises(CdcError) as caught:
        config_change.refuse(config, plan, purged)
    return caught.value


def test_refused_beforehand(config: Config) -> None:
    config_change.refuse(config, NOTHING, [])

    unfit = Refusal(subject="shop.bad", message="has no key", remedy="add one")
    error = refused(config, replace(NOTHING, refused=(unfit,)))
    assert (error.kind, error.remedy) == (ErrorKind.SOURCE_NOT_READY, "add one")
    assert refused(config, replace(NOTHING, begun=False)).kind is ErrorKind.CONFLICT
    (config.state_dir / "job.json").unlink()
    assert refused(config, NOTHING).kind is ErrorKind.UNREACHABLE


def test_a_table_does_not_go_while_an_operation_works_on_it(config: Config) -> None:
    operation = new_operation("replay", ["shop.a", "shop.b"], line="")
    files.ask(config.state_dir, operation)

    for error in (
        refused(config, replace(NOTHING, removed=(RemovedTable(table="shop.b", bytes=1),))),
        refused(config, NOTHING, "shop.a"),
    ):
        assert (error.kind, operation.id in error.message) == (ErrorKind.CONFLICT, True)
    config_change.refuse(config, NOTHING, ["shop.c"])


def test_one_at_a_time(config: Config) -> None:
    with (
        config_change.alone(config.state_dir),
        pytest.raises(CdcError) as caught,
        config_change.alone(config.state_dir),
    ):
        pass
    assert caught.value.kind is ErrorKind.CONFLICT
    with config_change.alone(config.state_dir):
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


def test_read_are_the_new_ones_and_those_an_earlier_call_left(config: Config) -> None:
    states = {"a": "streaming", "back": "streaming", "half": "resnapshotting"}
    entries = tuple(
        TableEntry(table=f"shop.{name}", path="", version=1, offset=1, state=state)
        for name, state in states.items()
    )
    now = datetime.now(UTC)
    Ledger(ledger_path(config)).append(
        LedgerRow(
            cut=1,
            epoch=1,
            lsn=1,
            committed_at=now,
            published_at=now,
            transactions=1,
            tables=entries,
        )
    )
    gone = source("gone", Finding.error("shop.gone", "the source has this table no more"))
    names = ("a", "back", "half", "left")
    done = Recaptured(
        added=(TableId("shop", "back"),),
        removed=(),
        tables=(gone, *map(source, names)),
        reconfigured=False,
    )

    assert config_change.to_read(config, done) == ["shop.back", "shop.half", "shop.left"]


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
def test_without_a_terminal_each_name_is_given_twice(
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
def test_on_a_terminal_the_name_is_typed(
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
