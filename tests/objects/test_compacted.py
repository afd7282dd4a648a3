"""A compaction of a control table is in the log once, and never beside another one."""

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake

from cdc.lake.commit.plain_combined import combine_plain
from cdc.lake.commit.replay import LiveFile
from cdc.lake.files.file_store import StoreError
from cdc.lake.records.ledger import Ledger
from cdc.lake.table.entry_file import entry_name
from cdc.lake.upkeep import compacted
from cdc.lake.upkeep.compacted import compact_in_store
from tests.objects.commit_paths import PATHS, combining_often, content
from tests.objects.faults import Fault, first
from tests.objects.server import ObjectServer

COMPACTED = [False, False, True, False, True]
"""Each second commit that adds rows is followed by a compaction."""
NOON = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - a type that asks for a feature


@pytest.mark.parametrize("version", [1, COMPACTED.index(True)])
@pytest.mark.parametrize("fault", [Fault.LOST, Fault.LATE_BUSY, Fault.BUSY])
@pytest.mark.parametrize("name", ["published", "refused", "late rows"])
def test_it_is_committed_once(
    lake: str, objects: ObjectServer, name: str, fault: Fault, version: int
) -> None:
    path = f"{lake}/shop/t"
    with combining_often():
        work = PATHS[name].begin(path)
        objects.faults.follow(first(1, fault, "PUT", entry_name(version)))
        work()

    assert objects.faults.met == [fault]
    commits = reversed(DeltaTable(path).history())
    assert [commit["operation"] == "OPTIMIZE" for commit in commits] == COMPACTED


def test_the_ledger_knows_its_last_cut(lake: str) -> None:
    path = f"{lake}/_wal2lake/ledger"
    with combining_often():
        PATHS["published"].begin(path)()

    ledger = Ledger(path)
    last = ledger.last()
    assert DeltaTable(path).history(1)[0]["operation"] == "OPTIMIZE"
    assert last is not None
    assert [last] == list(ledger.rows(after=2))


@pytest.fixture
def table(lake: str) -> str:
    """Make a table of three files, of which the first is of a version with fewer columns."""
    path = f"{lake}/_wal2lake/table"
    write_deltalake(path, pa.table({"id": [1], "at": [NOON]}))
    for number in (2, 3):
        rows = pa.table(
            {"id": [number], "at": [NOON], "names": [[{"first": "a", "last": str(number)}]]}
        )
        write_deltalake(path, rows, mode="append", schema_mode="merge")
    return path


COLUMNS = "id, at, names"
ROWS: list[Any] = [(1, NOON, None), *((n, NOON, [{"first": "a", "last": str(n)}]) for n in (2, 3))]


def test_rows_and_what_the_commit_says_are_kept(table: str) -> None:
    compact_in_store(table, 3, {"userMetadata": "said"})

    assert content(table, COLUMNS) == (3, "said", ROWS)
    assert len(DeltaTable(table).file_uris()) == 1


def test_one_that_another_has_forestalled_is_refused(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that was suspended has lost the lake meanwhile: delta-rs would double the rows."""

    def forestalled(*given: Any) -> LiveFile:  # noqa: ANN401
        made = combine_plain(*given)
        monkeypatch.setattr(compacted, "combine_plain", combine_plain)
        compact_in_store(table, 3, {})
        return made

    monkeypatch.setattr(compacted, "combine_plain", forestalled)
    with pytest.raises(StoreError, match=r"version 3 of .* is there already"):
        compact_in_store(table, 3, {})

    assert content(table, COLUMNS)[2] == ROWS


def test_a_table_that_asks_for_more_is_left_alone(table: str) -> None:
    opened = DeltaTable(table)
    opened.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    compact_in_store(table, 3, {})

    assert len(DeltaTable(table).file_uris()) == 3
