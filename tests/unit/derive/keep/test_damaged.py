"""A derived table that is damaged is made anew: another table, whose versions are its own."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from deltalake import DeltaTable

from cdc.derive.engine.input import Input
from cdc.derive.keep.derived_tables import DerivedTables
from cdc.errors import CdcError
from cdc.lake.files.store_of import store_of
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.table import deletion
from cdc.lake.table.deletion import delete_table
from cdc.lake.table.entry_file import entry_name
from cdc.state.derived_requests import rebuilds
from tests.unit.derive.events import read
from tests.unit.derive.keep.test_histories import PAST
from tests.unit.derive.logged_lake import LoggedLake
from tests.unit.derive.orders import one, order
from tests.unit.derive.small_lake import SmallLake, defined, rows_of

BY_WHO = read("SELECT who, count(*) AS n FROM shop.orders GROUP BY who")


@pytest.fixture
def kept(lake: SmallLake) -> Iterator[DerivedTables]:
    with closing(lake.keep(BY_WHO)) as tables:
        yield tables


def at_cut(kept: DerivedTables, lake: SmallLake, count: int) -> DerivedEntry:
    """Return the entry of a cut that has so many orders, each of a person of its own."""
    lake.set(orders=[order(n, f"w{n}") for n in range(count)], people=[])
    return one(kept, lake)


def names(count: int) -> list[str]:
    return sorted(f"w{n}" for n in range(count))


def people(entry: DerivedEntry) -> list[str]:
    return [row[0] for row in rows_of(entry)]


def entry_file(entry: DerivedEntry, version: int) -> Path:
    return Path(entry.path) / entry_name(version)


def test_a_table_of_which_a_version_is_gone_is_made_anew(
    kept: DerivedTables, lake: SmallLake
) -> None:
    """Its next version would have the number of the lost one, and other rows."""
    for count in (10, 11, 12):
        last = at_cut(kept, lake, count)
    entry_file(last, last.version).unlink()
    after = at_cut(kept, lake, 13)

    assert people(after) == names(13)
    assert (last.delta_id == after.delta_id, after.state) == (False, "streaming")


@pytest.mark.parametrize("release", ["this", "earlier"])
def test_a_table_that_went_back_while_the_job_was_down_is_made_anew(
    lake: SmallLake, release: str
) -> None:
    """The cuts of an earlier release have no ids."""
    with closing(lake.keep(BY_WHO)) as kept:
        for count in (10, 11, 12):
            last = at_cut(kept, lake, count)
    entry_file(last, last.version).unlink()
    known = last if release == "this" else replace(last, delta_id="")
    with closing(lake.keep(BY_WHO, last=[known])) as kept:
        after = at_cut(kept, lake, 13)

    assert people(after) == names(13)
    assert last.delta_id != after.delta_id


def test_a_table_that_no_reader_can_open_is_made_anew(kept: DerivedTables, lake: SmallLake) -> None:
    """It shows when a checkpoint cannot be written; the job has the state in memory until then."""
    for count in range(10, 15):
        good = at_cut(kept, lake, count)
    entry_file(good, 1).write_bytes(b"no entry")
    found = [at_cut(kept, lake, count) for count in range(15, 70)]
    (stopped,) = (entry for entry in found if entry.state == "stopped")

    assert "cannot be read" in stopped.reason
    assert people(found[-1]) == names(69)
    assert found[found.index(stopped) + 1].delta_id == found[-1].delta_id != good.delta_id


def test_versions_of_a_table_that_is_made_anew_are_those_of_another(
    kept: DerivedTables, lake: SmallLake
) -> None:
    before = at_cut(kept, lake, 10)
    same = at_cut(kept, lake, 11)
    shutil.rmtree(before.path)
    after = at_cut(kept, lake, 12)

    assert before.delta_id == same.delta_id != after.delta_id
    assert Input.of(after).open().version() == after.version == before.version
    with pytest.raises(CdcError, match="no longer exists") as refused:
        Input.of(before).open()
    assert "made anew since" in refused.value.detail


def test_tables_over_one_that_is_made_anew_have_its_rows(lake: SmallLake) -> None:
    """The numbers of its versions say nothing of them."""
    over = defined("over", f'SELECT who FROM "marts"."{BY_WHO.table.name}"', str(BY_WHO.table))
    with closing(lake.keep(BY_WHO, over)) as kept:
        lake.set(orders=[order(1, "a")], people=[])
        first, _ = kept.entries(lake.row())
        shutil.rmtree(first.path)
        lake.set(orders=[order(1, "b")])
        again, second = kept.entries(lake.row())

    assert again.version == first.version
    assert rows_of(second) == [("b",)]


@pytest.mark.parametrize("damage", ["back", "unreadable", "edited"])
def test_a_history_that_is_damaged_stops_until_its_directory_is_away(
    tmp_path: Path, damage: str
) -> None:
    """The log may no longer have all that it had, so nobody but its owner gives that up."""
    lake = LoggedLake(tmp_path, {})
    with closing(lake.derived(PAST)) as kept:
        for number in (1, 2, 3):
            lake.source.insert(number, number, 1)
            lake.commit()
            (last,) = kept.entries(lake.row())
        if damage == "back":
            entry_file(last, last.version).unlink()
        elif damage == "unreadable":
            entry_file(last, last.version).write_bytes(b"no entry")
        else:
            DeltaTable(last.path).alter.set_table_properties({"delta.appendOnly": "false"})
        found: list[DerivedEntry] = []
        for number in (4, 5):
            lake.source.insert(number, number, 1)
            lake.commit()
            found += kept.entries(lake.row())
        rebuilds(lake.folder).ask(PAST.table)
        found += kept.entries(lake.row())
        Path(last.path).rename(tmp_path / "away")
        lake.source.insert(6, 6, 1)
        lake.commit()
        (after,) = kept.entries(lake.row())

    assert {entry.state for entry in found} == {"stopped"}
    assert {(entry.version, entry.delta_id) for entry in found} == {(last.version, last.delta_id)}
    assert all("move its directory away" in entry.reason for entry in found)
    assert len(rows_of(after)) == 6
    assert after.delta_id != last.delta_id


def test_what_an_interrupted_deletion_leaves_is_no_table(
    kept: DerivedTables, lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = at_cut(kept, lake, 10).path
    tree = store_of(path).tree
    delete = Mock(side_effect=[None, OSError("no disk")])
    monkeypatch.setattr(deletion, "store_of", lambda _: Mock(tree=Mock(delete_dir_contents=delete)))

    with pytest.raises(OSError, match="no disk"):
        delete_table(path)
    tree.delete_dir_contents(*delete.call_args_list[0].args)

    assert not DeltaTable.is_deltatable(path)
