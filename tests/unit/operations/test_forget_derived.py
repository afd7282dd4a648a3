"""Which derived tables are made anew when rows are forgotten, and which are refused."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdc.derive.definition.declared import declared
from cdc.derive.engine.output_types import Output, lake_field
from cdc.derive.step.mark import Mark
from cdc.errors import CdcError, ErrorKind
from cdc.lake.create.whole_table import replace_table
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.operations.forget.derived import derived_from
from cdc.operations.forget.left_over import left_over, reached
from cdc.tables import TableId
from tests.unit.operations.cuts import cut_of

PLACES, OTHER = TableId("shop", "places"), TableId("shop", "other")
NAMED = "SELECT id, name FROM shop.places"
COUNTED = "SELECT name, count(*) AS n FROM marts.named GROUP BY name"
HISTORY = "/* ---\nkind: history\ntable: shop.places\n--- */\n"
LATE = (
    "/* ---\nlate: {{column: at, allowed: 1 minute, policy: {}}}\n--- */\n"
    "SELECT w.window_start, count(*) AS n FROM tumble(shop.places, at, INTERVAL '1 hour') w"
    " GROUP BY w.window_start"
)


def chosen(
    folder: Path,
    files: dict[str, str],
    *,
    table: TableId = PLACES,
    paused: Collection[str] = (),
    changed: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return what is made anew; entries of the cut may have ``changed`` fields."""
    for name, text in files.items():
        (folder / f"marts.{name}.sql").write_text(text)
    found = declared(folder, [PLACES, OTHER])
    assert not found.problems
    entries = [
        DerivedEntry(
            table=str(one.table), path="", version=1, state="streaming", definition=one.hash
        )
        for one in found.definitions
    ]
    row = cut_of(derived=tuple(replace(entry, **(changed or {})) for entry in entries))
    return [str(one.table) for one in derived_from(table, row, found, lambda t: str(t) in paused)]


def refused(folder: Path, files: dict[str, str], **changed: str) -> str:
    with pytest.raises(CdcError) as caught:
        chosen(folder, files, changed=changed)
    assert caught.value.kind is ErrorKind.CONFLICT
    return caught.value.message


def test_tables_over_a_table_come_after_their_inputs(tmp_path: Path) -> None:
    files = {"a": COUNTED, "named": NAMED, "other": "SELECT id FROM shop.other"}

    assert chosen(tmp_path, files) == ["marts.named", "marts.a"]
    assert chosen(tmp_path, {}, table=OTHER) == ["marts.other"]
    assert chosen(tmp_path, {}, table=TableId("shop", "third")) == []


def test_a_table_that_is_not_made_yet_is_made_anew(tmp_path: Path) -> None:
    assert chosen(tmp_path, {"named": NAMED}, changed={"definition": ""}) == ["marts.named"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (HISTORY, "marts.t keeps what shop.places no longer has"),
        (LATE.format("aside"), "marts.t__late, marts.t keep what"),
        (LATE.format("keep"), "marts.t__late keeps what"),
    ],
)
def test_what_keeps_rows_on_purpose_is_refused(tmp_path: Path, text: str, named: str) -> None:
    assert named in refused(tmp_path, {"t": text})


def test_a_history_of_another_table_does_not_hinder(tmp_path: Path) -> None:
    assert chosen(tmp_path, {"t": HISTORY, "named": "SELECT id FROM shop.other"}, table=OTHER) == [
        "marts.named"
    ]


def test_a_paused_table_is_refused(tmp_path: Path) -> None:
    for name, text in {"named": NAMED, "counted": COUNTED}.items():
        (tmp_path / f"marts.{name}.sql").write_text(text)
    with pytest.raises(CdcError, match=r"marts\.counted is paused") as caught:
        chosen(tmp_path, {}, paused={"marts.counted"})
    assert caught.value.remedy == "wal2lake derived resume marts.counted"
    assert chosen(tmp_path, {}, table=OTHER, paused={"marts.counted"}) == []


def test_a_stopped_table_is_refused_with_its_reason(tmp_path: Path) -> None:
    said = refused(tmp_path, {"named": NAMED}, state="stopped", reason="overflow")
    assert said == "marts.named is stopped: overflow"


def test_a_table_of_another_definition_is_refused(tmp_path: Path) -> None:
    said = refused(tmp_path, {"named": NAMED}, definition="another")
    assert said.startswith("marts.named may have values of shop.places")


def test_a_table_whose_definition_is_gone_is_refused(tmp_path: Path) -> None:
    row = cut_of(derived=(DerivedEntry(table="marts.gone", path="", version=1, state="streaming"),))
    with pytest.raises(CdcError, match=r"marts\.gone may have values"):
        derived_from(PLACES, row, declared(tmp_path, [PLACES]), lambda _: False)


def stored(lake: Path, name: str, metadata: str) -> None:
    path = f"{lake}/{name.replace('.', '/')}"
    fields = [lake_field(Output("id", "BIGINT"))]
    replace_table(path, fields, {}, pa.table({"id": pa.array([1], pa.int64())}), metadata)


def test_derived_tables_that_no_cut_has_are_found(tmp_path: Path) -> None:
    for name, inputs in {"marts.left": {"shop.places": 4}, "marts.kept": {"shop.other": 1}}.items():
        mark = Mark(definition="d", cut=1, epoch=1, lsn=1, inputs=inputs)
        stored(tmp_path, name, mark.metadata())
    stored(tmp_path, "shop.places", "{}")
    (tmp_path / "marts" / "no_table").mkdir()
    row = cut_of(derived=(DerivedEntry(table="marts.kept", path="", version=0, state="streaming"),))

    assert left_over(str(tmp_path), row) == {"marts.left": {"shop.places"}}


def test_what_was_made_of_left_tables_is_reached() -> None:
    inputs = {
        "marts.c": frozenset({"marts.b"}),
        "marts.a": frozenset({"shop.other"}),
        "marts.b": frozenset({"shop.places"}),
    }
    assert reached(frozenset({"shop.places"}), inputs) == ["marts.b", "marts.c"]
    assert reached(frozenset({"shop.third"}), inputs) == []
