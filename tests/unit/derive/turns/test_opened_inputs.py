"""Inputs are opened once at a cut, and brought on from one cut to the next."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc.derive.engine.input import Input
from cdc.derive.engine.inputs import rows
from cdc.derive.engine.opened_inputs import OpenedInputs
from cdc.errors import CdcError


class Numbers:
    """A table in which version n has the numbers 0 to n."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.add()

    def add(self) -> None:
        there = DeltaTable.is_deltatable(self.path)
        number = DeltaTable(self.path).version() + 1 if there else 0
        write_deltalake(self.path, pa.table({"n": [number]}), mode="append")

    def at(self, version: int) -> Input:
        return Input(self.path, version, str(DeltaTable(self.path).metadata().id))


def numbers(opened: DeltaTable) -> list[int]:
    return sorted(rows(opened, ["n"]).read_all()["n"].to_pylist())


@pytest.fixture
def table(tmp_path: Path) -> Numbers:
    return Numbers(tmp_path / "numbers")


@pytest.fixture
def inputs() -> OpenedInputs:
    return OpenedInputs()


def test_all_tables_get_the_same_at_a_cut(table: Numbers, inputs: OpenedInputs) -> None:
    assert inputs.open(table.at(0)) is inputs.open(table.at(0))


def test_it_is_brought_on_at_the_next_cut(table: Numbers, inputs: OpenedInputs) -> None:
    before = inputs.open(table.at(0))
    inputs.begin()
    table.add()
    table.add()
    after = inputs.open(table.at(2))

    assert after is before
    assert numbers(after) == [0, 1, 2]


def test_it_stays_as_it_is_within_a_cut(table: Numbers, inputs: OpenedInputs) -> None:
    inputs.open(table.at(0))
    inputs.begin()
    table.add()
    first = inputs.open(table.at(0))
    second = inputs.open(table.at(1))

    assert (numbers(first), numbers(second)) == ([0], [0, 1])


@pytest.mark.parametrize("wanted", [0, 1])
def test_the_table_is_further_than_the_cut(
    table: Numbers, inputs: OpenedInputs, wanted: int
) -> None:
    table.add()
    inputs.open(table.at(wanted))
    inputs.begin()
    table.add()
    table.add()

    assert numbers(inputs.open(table.at(2))) == [0, 1, 2]
    inputs.begin()
    assert numbers(inputs.open(table.at(1))) == [0, 1]


def test_another_table_took_its_place(tmp_path: Path, inputs: OpenedInputs) -> None:
    old = Numbers(tmp_path / "numbers")
    inputs.open(old.at(0))
    inputs.begin()
    shutil.rmtree(old.path)
    new = Numbers(tmp_path / "numbers")
    new.add()
    write_deltalake(new.path, pa.table({"n": [9]}), mode="overwrite")

    assert numbers(inputs.open(new.at(2))) == [9]


def test_a_version_that_is_gone_is_refused_again(table: Numbers, inputs: OpenedInputs) -> None:
    for _ in range(2):
        with pytest.raises(CdcError, match=r"version 7 of .* no longer exists"):
            inputs.open(table.at(7))
