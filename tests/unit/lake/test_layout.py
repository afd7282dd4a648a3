"""Paths in the lake, and names that are refused because they cannot be paths."""

from pathlib import Path

import pytest

from cdc.config import Config, Lake, Source
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import table_path
from cdc.lake.writable import refuse_unwritable
from cdc.tables import TableId


def _config(path: Path) -> Config:
    return Config(source=Source(tables=["a.*"]), lake=Lake(path=str(path)))


def test_a_lake_below_a_file_is_refused_with_its_configuration_key(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(CdcError, match=r"lake\.path: .*file/lake cannot be written") as raised:
        refuse_unwritable(_config(tmp_path / "file" / "lake"))

    assert raised.value.kind is ErrorKind.CONFIG
    assert raised.value.remedy


def test_a_lake_that_does_not_exist_is_created(tmp_path: Path) -> None:
    refuse_unwritable(_config(tmp_path / "new" / "lake"))

    assert (tmp_path / "new" / "lake").is_dir()


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a\\b", "_wal2lake", "a\nb"])
def test_a_name_that_is_not_a_single_directory_is_refused(tmp_path: Path, name: str) -> None:
    for table in (TableId("s", name), TableId(name, "t")):
        with pytest.raises(CdcError, match="cannot be stored") as raised:
            table_path(_config(tmp_path), table)
        assert raised.value.kind is ErrorKind.CONFIG


def test_the_path_of_a_table_is_its_schema_and_name(tmp_path: Path) -> None:
    assert table_path(_config(tmp_path), TableId("shop", "orders")) == f"{tmp_path}/shop/orders"
