"""A derived table is written at a cost that follows the change, and read by any reader."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake

from cdc.derive.step import upkeep
from cdc.derive.step.difference import GONE
from cdc.derive.step.mark import USER_METADATA, Mark
from cdc.derive.step.writer import TableWriter, UnwritableError
from cdc.lake.create.whole_table import replace_table
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.lake.table.positions import MARK
from cdc.tables import TableId
from tests.duckdb_reader import duckdb_with_delta
from tests.unit.derive.events import read
from tests.unit.derive.orders import BY_WHO, one, order
from tests.unit.derive.small_lake import SmallLake, defined, rows_of

COPIES: Final = defined("copies", 'SELECT who, amount FROM "shop"."orders"', "shop.orders")
MANY: Final = 200


def orders(count: int) -> list[dict[str, Any]]:
    return [order(number, f"w{number % 70}") for number in range(count)]


def mark_of(entry: DerivedEntry) -> str:
    """Return the text of the newest commit's mark."""
    return str(DeltaTable(entry.path).history(1)[0][USER_METADATA])


def stored_mark(entry: DerivedEntry) -> Mark:
    """Return the newest commit's mark."""
    facts = json.loads(mark_of(entry))
    return Mark(**{name: facts[name] for name in facts.keys() - {MARK, "derived"}})


def added(entry: DerivedEntry) -> list[dict[str, Any]]:
    """Return the files that the entry's commit adds, those with deleted rows first."""
    text = (Path(entry.path) / "_delta_log" / f"{entry.version:020d}.json").read_text()
    adds = [action["add"] for action in map(json.loads, text.splitlines()) if "add" in action]
    return sorted(adds, key=lambda add: "deletionVector" not in add)


def by_duckdb(entry: DerivedEntry) -> "Counter[tuple[Any, ...]]":
    """Return names and amounts as a reader sees them that the project does not use."""
    query = f"SELECT who, amount FROM delta_scan('{entry.path}')"
    with duckdb_with_delta() as database:
        return Counter(database.execute(query).fetchall())


def test_a_change_marks_rows_and_writes_only_new_ones(lake: SmallLake) -> None:
    after = [order(900, "new"), *orders(MANY - 2)]
    with closing(lake.keep(COPIES)) as kept:
        lake.set(orders=orders(MANY), people=[])
        first = one(kept, lake)
        lake.set(orders=after)
        second = one(kept, lake)

    ((built,), (marked, new)) = added(first), added(second)
    assert (marked["path"], marked["deletionVector"]["cardinality"]) == (built["path"], 2)
    assert json.loads(new["stats"])["numRecords"] == 1
    expected = Counter((row["who"], row["amount"]) for row in after)
    assert by_duckdb(second) == expected == Counter(rows_of(second))


def test_readers_can_skip_its_files_by_any_column(lake: SmallLake) -> None:
    with closing(lake.keep(COPIES)) as kept:
        lake.set(orders=orders(MANY), people=[])
        entry = one(kept, lake)

    (built,) = added(entry)
    stored = {f.name: f.metadata for f in DeltaTable(entry.path).schema().fields}
    smallest = json.loads(built["stats"])["minValues"]
    assert smallest[stored["who"]["delta.columnMapping.physicalName"]] == "w0"
    assert smallest[stored["amount"]["delta.columnMapping.physicalName"]] == 1


def test_a_table_of_an_earlier_release_is_made_anew_with_its_next_change(lake: SmallLake) -> None:
    """delta-rs wrote it: without deletion vectors."""
    with closing(lake.keep(COPIES)) as kept:
        lake.set(orders=orders(MANY), people=[])
        entry = one(kept, lake)
    mark = CommitProperties(custom_metadata={USER_METADATA: mark_of(entry)})
    given = QueryBuilder().register("t", DeltaTable(entry.path)).execute("SELECT * FROM t")
    found = pa.table(given.read_all())
    rows = pa.table(found.columns, names=found.schema.names)
    for file in Path(entry.path).rglob("*"):
        if file.is_file():
            file.unlink()
    write_deltalake(entry.path, rows, commit_properties=mark)
    with closing(lake.keep(COPIES, last=[entry])) as kept:
        same = one(kept, lake)
        lake.set(orders=orders(MANY - 1))
        changed = one(kept, lake)

    assert same.version == 0
    assert json.loads(mark_of(changed))["cost"]["why"] == "it is made anew: its protocol is 1/2"
    assert DeltaTable(changed.path).protocol().min_reader_version == 3
    assert Counter(rows_of(changed)) == by_duckdb(changed)
    assert changed.rows == MANY - 1


def test_a_row_that_is_to_go_and_is_not_there_is_refused(lake: SmallLake) -> None:
    """Such a table has other rows than a step believes."""
    with closing(lake.keep(BY_WHO)) as kept:
        lake.set(orders=orders(MANY), people=[])
        entry = one(kept, lake)
    schema = pa.schema([*pa.schema(DeltaTable(entry.path).schema().to_arrow()), (GONE, pa.bool_())])
    gone = pa.Table.from_pylist([{ROW_HASH: "00", COPY: 1, GONE: True}], schema)

    with pytest.raises(UnwritableError, match="lacks rows"):
        TableWriter(entry.path, lake.folder / "index").commit(
            gone, stored_mark(entry), entry.version
        )

    assert DeltaTable(entry.path).version() == entry.version


def test_a_difference_from_another_version_is_refused(lake: SmallLake) -> None:
    """Somebody has committed since the table was read."""
    first, second = islice(steps(lake, 3), 2)
    schema = pa.schema([*pa.schema(DeltaTable(first.path).schema().to_arrow()), (GONE, pa.bool_())])
    writer = TableWriter(first.path, lake.folder / "index")

    with pytest.raises(UnwritableError, match=f"is at version {second.version}, but was at"):
        writer.commit(schema.empty_table(), stored_mark(second), first.version)


def test_a_table_without_digests_has_to_be_made_anew(lake: SmallLake) -> None:
    path = lake.path(TableId("marts", "copies"))
    field = {"name": "who", "type": "string", "nullable": True, "metadata": {}}
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    replace_table(path, [field], properties, pa.table({"who": ["a"]}), "")
    new = pa.table({"who": ["b"], ROW_HASH: ["00"], COPY: [1], GONE: [False]})

    with pytest.raises(UnwritableError, match="no digests"):
        TableWriter(path, lake.folder / "index").commit(
            new, Mark(definition="", cut=1, epoch=1, lsn=1), 0
        )


def test_its_rows_are_counted_where_an_input_has_a_version_without_changes(lake: SmallLake) -> None:
    whom = read("SELECT o.who, count(*) AS n FROM shop.orders AS o GROUP BY o.who", "whom")
    with closing(lake.keep(whom)) as kept:
        lake.set(orders=[*orders(MANY), order(900, "new")], people=[])
        one(kept, lake)
        lake.set(orders=orders(MANY))
        second = one(kept, lake)
        DeltaTable(lake.path(TableId("shop", "orders"))).alter.set_table_properties(
            {"delta.checkpointInterval": "7"}
        )
        third = one(kept, lake)

    assert (third.version, third.at_cut) == (second.version, 3)
    assert second.rows == third.rows == 70
    assert json.loads(mark_of(third))["cost"]["mode"] == "scoped"


def steps(lake: SmallLake, count: int) -> Iterator[DerivedEntry]:
    """Yield the entries of so many cuts, each of which has another order."""
    with closing(lake.keep(COPIES)) as kept:
        for number in range(count):
            lake.set(orders=[order(at, f"w{at}") for at in range(number + 1)], people=[])
            yield one(kept, lake)


def test_files_stay_few_and_every_kept_version_is_read(lake: SmallLake) -> None:
    entries = list(steps(lake, 40))

    assert len(DeltaTable(entries[-1].path).file_uris()) < 10
    assert [len(rows_of(entry)) for entry in entries] == list(range(1, 41))
    assert json.loads(mark_of(entries[-1]))["cut"] == 40


def test_what_no_kept_version_needs_is_deleted(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "HOUR", 0)
    monkeypatch.setattr(upkeep, "EVERY", 10)
    *_, last = steps(lake, 60)

    files = {path.name for path in Path(last.path).glob("*.parquet")}
    live = {Path(uri).name for uri in DeltaTable(last.path).file_uris()}
    assert len(rows_of(last)) == 60
    assert live <= files
    assert len(files) < len(live) + 20
    assert not (Path(last.path) / "_delta_log" / f"{0:020d}.json").exists()
