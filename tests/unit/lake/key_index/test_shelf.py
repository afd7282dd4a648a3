"""Indexes stay within the bound of memory; their files are believed only if they are right."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cdc.lake.key_index import index_file, shelf
from cdc.lake.key_index.index_file import file_name
from tests.unit.lake.key_index.lake_table import Key, LakeTable, batch, key_of
from tests.unit.lake.key_index.test_model import DAMAGE

INTEGER, TEXT = key_of("bigint"), key_of("string")


def keys_of(table: LakeTable, *numbers: int) -> list[Key]:
    return [(number,) if table.key == INTEGER else (str(number),) for number in numbers]


def files_in(table: LakeTable) -> set[str]:
    return {path.name for path in table.directory.iterdir()} - {"secret"}


@pytest.fixture(params=[INTEGER, TEXT], ids=["integer", "text"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LakeTable:
    """Return a table with three files of 10, 20 and 5 keys, and no bound of memory."""
    made = LakeTable(tmp_path, request.param)
    for begin, count in ((0, 10), (100, 20), (200, 5)):
        made.append(keys_of(made, *range(begin, begin + count)))
    return made


def test_bytes_per_key(table: LakeTable) -> None:
    assert table.index.bytes_per_key() == 0
    table.look_up(keys_of(table, 1))

    assert table.index.bytes_per_key() == (12 if table.key == INTEGER else 20)
    now = table.index.statistics()
    assert (now.files, now.keys, now.mapped_bytes, now.made) == (3, 35, 0, 3)
    assert now.memory_bytes == 35 * table.index.bytes_per_key()


def test_the_largest_goes_to_a_file_first(table: LakeTable) -> None:
    table.memory_bytes = 15 * (12 if table.key == INTEGER else 20)
    table.restart()
    table.look_up(keys_of(table, 1))

    now = table.index.statistics()
    assert now.memory_bytes == table.memory_bytes
    assert files_in(table) == {file_name("part-1.parquet")}


def test_without_memory_all_are_mapped_and_a_restart_makes_none(table: LakeTable) -> None:
    table.memory_bytes = 0
    for made in (3, 0):
        table.restart()
        assert table.look_up(keys_of(table, 9, 119, 204, 205)) == [
            ("part-0.parquet", 9),
            ("part-1.parquet", 19),
            ("part-2.parquet", 4),
            None,
        ]
        now = table.index.statistics()
        assert (now.memory_bytes, now.made, now.keys) == (0, made, 35)


def test_a_large_index_in_memory_survives_a_restart(
    table: LakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "KEPT_BYTES", 20 * (12 if table.key == INTEGER else 20))
    table.look_up(keys_of(table, 1))
    assert table.index.statistics().mapped_bytes == 0
    assert files_in(table) == {file_name("part-1.parquet")}
    table.restart()
    table.look_up(keys_of(table, 1))

    assert table.index.statistics().made == 2


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_index_is_made_again(table: LakeTable, change: Callable[[bytes], bytes]) -> None:
    table.memory_bytes = 0
    table.restart()
    asked = keys_of(table, *range(300))
    table.look_up(asked)
    path = table.directory / file_name("part-1.parquet")
    right = path.read_bytes()
    path.write_bytes(change(right))
    table.restart()

    assert table.look_up(asked) == table.expected(asked)
    assert table.index.statistics().made == 1
    assert path.read_bytes() == right


def test_every_byte_of_an_index_file_counts(table: LakeTable) -> None:
    table.memory_bytes = 0
    table.restart()
    asked = keys_of(table, *range(200, 205))
    table.look_up(asked)
    path = table.directory / file_name("part-2.parquet")
    right = path.read_bytes()
    for place in [*range(56), *range(64, len(right), 5)]:
        path.unlink()
        path.write_bytes(right[:place] + bytes([right[place] ^ 4]) + right[place + 1 :])
        table.restart()

        assert table.look_up(asked) == table.expected(asked)
        assert table.index.statistics().made == 1


def test_an_index_of_another_file_or_of_an_older_format_is_not_believed(
    table: LakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = table.append(keys_of(table, *range(300, 320)))  # of the size of part-1
    table.memory_bytes = 0
    table.restart()
    asked = keys_of(table, *range(400))
    table.look_up(asked)
    shutil.copy(
        table.directory / file_name(other.path), table.directory / file_name("part-1.parquet")
    )
    table.restart()
    assert table.look_up(asked) == table.expected(asked)
    assert table.index.statistics().made == 1

    monkeypatch.setattr(index_file, "_FORMAT", b"wal2lake keys 2\n")
    table.restart()
    assert table.look_up(asked) == table.expected(asked)
    assert table.index.statistics().made == 4


@pytest.mark.parametrize("what", ["secret", "all"])
def test_what_is_deleted_is_made_again(table: LakeTable, what: str) -> None:
    table.memory_bytes = 0
    table.restart()
    asked = keys_of(table, *range(300))
    for restart in (False, True):
        table.look_up(asked)
        if what == "secret":
            (table.directory / "secret").unlink()
        else:
            shutil.rmtree(table.directory)
        if restart:
            table.restart()

        assert table.look_up(asked) == table.expected(asked)
        if not restart:
            table.restart()
    table.append(keys_of(table, 500))
    assert table.look_up(keys_of(table, 500)) == [("part-3.parquet", 0)]


def test_a_secret_of_another_length_is_replaced(table: LakeTable) -> None:
    (table.directory / "secret").write_bytes(b"short")
    table.restart()

    assert len((table.directory / "secret").read_bytes()) == 32


def test_a_directory_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "index").write_text("not a directory")
    table = LakeTable(tmp_path, TEXT, 0)
    table.append([("a",), ("b",)])
    for made in (1, 2):
        assert table.look_up([("b",), ("c",)]) == [("part-0.parquet", 1), None]
        now = table.index.statistics()
        assert (now.files, now.memory_bytes, now.made) == (0, 0, made)
    table.index.keep_only([])


def test_dropped_files_leave_nothing(table: LakeTable) -> None:
    table.memory_bytes = 6 * (12 if table.key == INTEGER else 20)
    table.restart()
    table.look_up(keys_of(table, 1))
    (table.directory / ".x.keys.1.partial").write_bytes(b"half")
    (table.directory / file_name("of an earlier process")).write_bytes(b"old")
    table.index.keep_only([table.files["part-1.parquet"], table.files["part-2.parquet"]])

    now = table.index.statistics()
    assert (now.files, now.keys) == (2, 25)
    assert files_in(table) == {file_name("part-1.parquet")}


def test_prepare_makes_what_a_look_up_then_finds(table: LakeTable) -> None:
    table.index.prepare(table.files.values())
    assert table.index.statistics().made == 3
    table.index.look_up(batch(table.key, keys_of(table, 1)), table.live())

    assert table.index.statistics().made == 3
