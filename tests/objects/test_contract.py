"""A local disk and an object store mean the same: one suite for both, and faults of the latter."""

from datetime import timedelta
from pathlib import Path

import pytest

from cdc.lake.files import requests
from cdc.lake.files.fence import fenced
from cdc.lake.files.file_store import FileStore, StoreError
from cdc.lake.files.store_of import store_of
from tests.objects.faults import Fault, first, share
from tests.objects.server import ObjectServer

ENTRY = "_delta_log/00000000000000000007.json"


@pytest.fixture(params=["disk", "objects"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path if request.param == "disk" else request.getfixturevalue("lake"))


@pytest.fixture
def store(place: str) -> FileStore:
    made = store_of(f"{place}/t")
    made.make_folder("_delta_log")
    return made


def test_a_file_is_read_as_it_was_written(store: FileStore) -> None:
    store.write("a b+c%20d.parquet", b"1234")
    store.settle()

    assert store.read("a b+c%20d.parquet") == b"1234"
    assert store.size("a b+c%20d.parquet") == 4


def test_an_entry_is_put_once(store: FileStore) -> None:
    store.put_if_absent(ENTRY, b"first")

    with pytest.raises(FileExistsError):
        store.put_if_absent(ENTRY, b"second")

    assert store.read(ENTRY) == b"first"


def test_a_file_is_never_overwritten(store: FileStore) -> None:
    store.write("a", b"first")

    with pytest.raises(FileExistsError):
        store.write("a", b"second")

    assert store.read("a") == b"first"


def test_what_is_not_there_is_said_to_be_not_there(store: FileStore) -> None:
    with pytest.raises(FileNotFoundError):
        store.read("a")

    assert (store.size("a"), store.stamp("a")) == (None, None)
    assert store.names("_delta_log") == []


def test_names_and_times_are_those_of_the_folder_alone(store: FileStore) -> None:
    store.write("a", b"1")
    store.put_if_absent(ENTRY, b"1")
    store.put_if_absent(ENTRY.replace("7", "8"), b"2")

    assert sorted(store.names("_delta_log")) == [f"{n:020d}.json" for n in (7, 8)]
    assert set(store.times("_delta_log")) == set(store.names("_delta_log"))
    assert all(at > 1e9 for at in store.times("_delta_log").values())


def test_a_stamp_tells_another_file_of_the_same_name(store: FileStore) -> None:
    store.write("a", b"first")
    before = store.stamp("a")
    assert before == store.stamp("a")

    store.delete("a")
    store.write("a", b"other")

    assert store.stamp("a") != before


def test_a_deleted_file_is_gone_and_may_be_deleted_again(store: FileStore) -> None:
    store.write("a", b"1")

    assert store.delete("a")
    store.delete("a")

    assert store.size("a") is None


def test_a_file_is_taken_from_another_table(store: FileStore, place: str) -> None:
    store.write("a", b"1")
    other = store_of(f"{place}/u")
    other.make_folder("_delta_log")

    other.take(store, "a")
    store.delete("a")

    assert other.read("a") == b"1"


def test_arrow_reads_a_part_and_writes_a_file(store: FileStore) -> None:
    with store.tree.open_output_stream("a") as file:
        file.write(b"0123456789")

    assert store.finish("a") == 10
    with store.tree.open_input_file("a") as source:
        source.seek(3)
        assert source.read(4) == b"3456"


def test_a_touched_file_is_there_and_may_be_touched_again(store: FileStore) -> None:
    store.touch("a")
    store.touch("a")

    assert store.size("a") == 0


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.LATE_BUSY, Fault.BUSY])
def test_a_put_whose_answer_is_lost_is_known_to_have_won(
    lake: str, objects: ObjectServer, fault: Fault
) -> None:
    store = store_of(f"{lake}/t")
    objects.faults.follow(first(2, fault, "PUT", ENTRY))

    store.put_if_absent(ENTRY, b"mine")

    assert objects.faults.met == [fault, fault]
    assert store.read(ENTRY) == b"mine"


def test_a_put_whose_answer_is_lost_is_known_to_have_lost(lake: str, objects: ObjectServer) -> None:
    store = store_of(f"{lake}/t")
    store.put_if_absent(ENTRY, b"theirs")
    objects.faults.follow(first(1, Fault.LOST, "PUT", ENTRY))

    with pytest.raises(FileExistsError):
        store.put_if_absent(ENTRY, b"mine")

    assert store.read(ENTRY) == b"theirs"


def test_a_store_that_fails_at_random_means_the_same(lake: str, objects: ObjectServer) -> None:
    store = store_of(f"{lake}/t")
    shares = {Fault.BUSY: 0.2, Fault.LOST: 0.1, Fault.LATE_BUSY: 0.1}
    objects.faults.follow(share(7, shares))

    for number in range(20):
        store.put_if_absent(f"_delta_log/{number}", str(number).encode())
        with pytest.raises(FileExistsError):
            store.put_if_absent(f"_delta_log/{number}", b"other")

    assert len(store.names("_delta_log")) == 20
    assert all(store.read(f"_delta_log/{n}") == str(n).encode() for n in range(20))
    assert set(objects.faults.met) == set(shares)


def test_a_store_that_does_not_answer_is_not_a_file_that_is_not_there(
    lake: str, objects: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(f"{lake}/t")
    objects.faults.follow(share(1, {Fault.BUSY: 1.0}))
    monkeypatch.setattr(requests, "PATIENCE", timedelta(seconds=0.3))

    for ask in (store.stamp, store.size, store.read, store.times):
        with pytest.raises(StoreError, match="no answer of the object store") as raised:
            ask("a")
        assert not isinstance(raised.value, FileNotFoundError)


def test_who_may_not_write_any_more_does_not(lake: str) -> None:
    store, other = store_of(f"{lake}/t"), store_of(f"{lake}x/t")

    def refuse() -> None:
        raise StoreError("held by another")

    with fenced(lake, refuse):
        for write in (
            lambda: store.put_if_absent(ENTRY, b"1"),
            lambda: store.write("a", b"1"),
            lambda: store.delete("a"),
            lambda: store.take(other, "a"),
        ):
            with pytest.raises(StoreError, match="held by another"):
                write()
        other.write("a", b"1")

    assert store.size(ENTRY) is None
