"""A store that is slow: each request takes longer, or one takes longer than anybody waits."""

import time
from datetime import timedelta

import pytest
from deltalake import DeltaTable

from cdc.lake.commit.committer import Committer
from cdc.lake.files import s3_access
from cdc.lake.table.entry_file import entry_name
from tests.objects.faults import Fault, first, slow
from tests.objects.server import ObjectServer
from tests.objects.test_commits import add, at, rows, seen, table

__all__ = ["table"]

SECONDS = 0.1
REQUESTS = 12
"""Of a commit that adds and deletes rows, as docs/object-store.md has it, and two to spare."""


def test_a_commit_costs_few_requests_in_sequence(table: str, objects: ObjectServer) -> None:
    committer = Committer(table)
    file = add(committer, 1, 2)
    committer.open()
    new = rows(committer, 3)
    objects.faults.follow(slow(SECONDS))
    began = time.monotonic()
    committer.open()
    committer.commit(new, {file: [0]}, at(3))
    took = time.monotonic() - began

    asked = objects.faults.asked
    objects.faults.heal()
    assert seen(table) == [2, 3]
    assert asked <= REQUESTS
    assert asked * SECONDS <= took


def test_a_put_that_takes_longer_than_a_request_may_is_found_to_have_won(
    table: str, objects: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_access, "REQUEST", timedelta(seconds=0.5))
    s3_access.bucket_store.cache_clear()
    try:
        committer = Committer(table)
        objects.faults.follow(first(1, Fault.SLOW, "PUT", entry_name(1)))
        add(committer, 1)
        add(committer, 2)
    finally:
        s3_access.bucket_store.cache_clear()

    assert objects.faults.met == [Fault.SLOW]
    assert (seen(table), DeltaTable(table).version()) == ([1, 2], 2)
