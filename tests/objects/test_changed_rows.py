"""The rows that differ between two versions of a table in an object store."""

from deltalake import DeltaTable

from cdc.lake.changed.changed_rows import changed_rows, count_changed
from cdc.lake.commit.committer import Committer
from cdc.lake.files.store_of import store_of
from tests.objects.faults import Fault, share
from tests.objects.server import ObjectServer
from tests.objects.test_commits import add, at, rows, table

__all__ = ["table"]


def test_rows_that_differ_are_found_in_an_object_store(objects: ObjectServer, table: str) -> None:
    committer = Committer(table)
    first, second = add(committer, 1, 2, 3), add(committer, 4)
    DeltaTable(table).create_checkpoint()
    committer.commit(rows(committer, 5), {first: [1], second: [0]}, at(5))
    add(committer, 6)

    found = changed_rows(table, 2, 4, ["id"], 9)

    assert found is not None
    assert sorted(found.removed["id"].to_pylist()) == [2, 4]
    assert sorted(found.added["id"].to_pylist()) == [5, 6]
    objects.faults.follow(share(3, {Fault.BUSY: 0.2}))
    assert [count_changed(table, 2, 4) for _ in range(5)] == [4] * 5
    assert objects.faults.met
    objects.faults.heal()
    store_of(table).delete(first)
    assert count_changed(table, 2, 4) == 4
    assert changed_rows(table, 2, 4, ["id"], 9) is None
