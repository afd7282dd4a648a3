"""Old versions in an object store: what they say of themselves, and how long they are kept."""

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from cdc.derive.step.mark import Mark, mark_facts
from cdc.lake.commit.committer import Committer
from cdc.lake.files.store_of import store_of
from cdc.lake.table.commit_info import commit_info
from cdc.lake.table.entry_file import LOG, entry_name
from cdc.lake.upkeep.control_tables import optimize
from cdc.lake.upkeep.erasure import newest_time
from cdc.lake.upkeep.old_versions import clean
from cdc.lake.upkeep.strays import delete_strays
from tests.objects.faults import Fault, share
from tests.objects.server import ObjectServer
from tests.objects.test_commits import WRITES, add, at, rows, table
from tests.waiting import until

__all__ = ["table"]

FAILING = share(7, {Fault.BUSY: 0.1, Fault.GONE: 0.05})


def ids(path: str, version: int) -> list[int]:
    opened = DeltaTable(path, version=version)
    found = QueryBuilder().register("t", opened).execute("SELECT id FROM t ORDER BY id")
    return list(pa.table(found.read_all())["id"].to_pylist())


def written(path: str) -> list[list[int]]:
    """Commit eight versions; return the rows of each, counted by hand."""
    committer, versions = Committer(path), [list[int]()]
    for number in range(1, 5):
        file = add(committer, number, -number)
        versions.append(sorted([*versions[-1], number, -number]))
        committer.commit(rows(committer, number + 10), {file: [1]}, at(number + 10))
        versions.append(sorted({*versions[-1], number + 10} - {-number}))
    return versions


def data_files(path: str) -> set[str]:
    return {name for name in store_of(path).names("") if not name.startswith("_")}


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_each_version_says_what_its_commit_said(
    table: str, objects: ObjectServer, scheme: str
) -> None:
    written(table)
    path = table.replace("s3a:", f"{scheme}:")
    DeltaTable(table, version=4).create_checkpoint()
    objects.faults.follow(FAILING)

    said = [json.loads(commit_info(DeltaTable(path, version=v))["userMetadata"]) for v in range(9)]

    assert [one["offset"] for one in said] == [0, 1, 11, 2, 12, 3, 13, 4, 14]


def test_a_version_whose_entry_is_gone_says_nothing(table: str) -> None:
    written(table)
    DeltaTable(table, version=4).create_checkpoint()
    opened = DeltaTable(table, version=4)
    store_of(table).delete(entry_name(4))

    assert commit_info(opened) == {}


def test_the_mark_of_an_older_version_is_its_own(table: str) -> None:
    committer = Committer(table)
    for number in (1, 2):
        mark = Mark(definition=f"d{number}", cut=number, epoch=1, lsn=number)
        new = rows(committer, number)
        committer.commit(new, {}, mark)

    facts = [mark_facts(DeltaTable(table, version=version)) for version in (1, 2)]

    assert [(each["definition"], each["cut"]) for each in facts] == [("d1", 1), ("d2", 2)]


def test_what_a_kept_version_has_is_kept_and_nothing_else(
    table: str, objects: ObjectServer
) -> None:
    committer = Committer(table)
    versions = written(table)
    assert committer.checkpoint(3)
    done = committer.combining(list(committer.open().files.values()))()
    committer.open()
    assert committer.take_place(done, at(14)) == 9
    since = newest_time(table, 9)
    until(lambda: add(committer, 99) and newest_time(table, committer.open().version) > since)
    last = committer.open().version
    expired = [v for v in range(last) if newest_time(table, v) <= since]
    needed = {
        file
        for version in range(expired[-1], last + 1)
        for file in pa.table(DeltaTable(table, version=version).get_add_actions())["path"]
    }
    before = data_files(table)
    objects.faults.follow(FAILING)
    cleaned = clean(table, since)
    delete_strays(table, since)
    objects.faults.heal()

    assert cleaned.files == len(before - data_files(table)) > 0
    assert data_files(table) == {str(name) for name in needed}
    assert (ids(table, 9), ids(table, last)[-1]) == (versions[8], 99)
    with pytest.raises(DeltaError):
        DeltaTable(table, version=2)
    assert f"{3:020d}.json" in store_of(table).names(LOG)
    assert Committer(table).open().version == last


@pytest.mark.parametrize("name", ["ledger", "quarantine"])
def test_a_control_table_is_combined_and_vacuumed(
    lake: str, objects: ObjectServer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{lake}/_wal2lake/{name}"
    for number in range(4):
        WRITES[name](path, number)
    objects.faults.follow(FAILING)
    monkeypatch.setattr("cdc.lake.upkeep.control_tables.FILES", 2)

    assert optimize(path, DeltaTable(path), hours=0)
    objects.faults.heal()

    (left,) = data_files(path)
    assert left == DeltaTable(path).file_uris()[0].rpartition("/")[2]
    counted = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT count(*) AS n FROM t")
    assert pa.table(counted.read_all())["n"].to_pylist() == [4]
