"""Tables that lost changes are resnapshotted without a command, where the policy says so."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdc.apply.table.applied_table import AppliedTable
from cdc.config import Config, Lake, LostPolicy, Source
from cdc.operations.automatic import COPY_LINE, LINE, read_first_rows, read_lost
from cdc.state import operation_files as files
from cdc.state.submission import asked_now
from cdc.tables import TableId


def config(root: Path, policy: LostPolicy) -> Config:
    source = Source(tables=["a.*"], on_lost_changes=policy)
    return Config(source=source, lake=Lake(path=str(root / "lake")), state_dir=root)


def table(name: str, *, stopped: bool = True, epoch: int = 1, awaits: bool = False) -> AppliedTable:
    """Return a stand-in with what the requests look at; the real table needs Spark."""
    stand_in: Any = SimpleNamespace(
        stopped=stopped,
        awaits_first_rows=awaits,
        position=SimpleNamespace(epoch=epoch),
        schema=SimpleNamespace(table=TableId("a", name)),
    )
    return cast("AppliedTable", stand_in)


def test_each_table_of_an_earlier_epoch_has_its_own_request(tmp_path: Path) -> None:
    tables = [table("two"), table("one"), table("read", epoch=2), table("goes_on", stopped=False)]
    wanted = config(tmp_path, "read_again")

    read_lost(wanted, tables, epoch=2)

    requested = files.unfinished(tmp_path)
    assert [(operation.command, operation.tables, operation.line) for operation in requested] == [
        ("resnapshot", ("a.one",), LINE),
        ("resnapshot", ("a.two",), LINE),
    ]
    read_lost(wanted, tables, epoch=2)  # as after a restart that interrupted the requests
    assert files.unfinished(tmp_path) == requested


def test_a_table_that_somebody_requested_is_not_requested_again(tmp_path: Path) -> None:
    mine = asked_now("resnapshot", ["a.one"], {"mode": "shadow"}, line="wal2lake resnapshot")
    files.ask(tmp_path, mine)

    read_lost(config(tmp_path, "read_again"), [table("one")], epoch=2)

    assert files.unfinished(tmp_path) == [mine]


@pytest.mark.parametrize("epoch", [1, 2])
def test_nothing_is_requested_by_default(tmp_path: Path, epoch: int) -> None:
    read_lost(config(tmp_path, "stop"), [table("one")], epoch=epoch)

    assert files.unfinished(tmp_path) == []


def test_all_tables_without_first_rows_are_read_by_one_operation(tmp_path: Path) -> None:
    tables = [table("two", awaits=True), table("read"), table("one", awaits=True)]
    wanted = config(tmp_path, "stop")

    read_first_rows(wanted, tables)
    read_first_rows(wanted, tables)  # as after a restart that interrupted the snapshot

    (operation,) = files.unfinished(tmp_path)
    assert (operation.command, operation.tables) == ("snapshot", ("a.one", "a.two"))
    assert operation.line == COPY_LINE == "source.snapshot: copy"

    read_first_rows(wanted, [*tables, table("new", awaits=True)])

    assert files.unfinished(tmp_path)[1].tables == ("a.new",)


def test_no_snapshot_is_requested_where_every_table_has_its_rows(tmp_path: Path) -> None:
    read_first_rows(config(tmp_path, "stop"), [table("one"), table("two", stopped=False)])

    assert files.unfinished(tmp_path) == []
