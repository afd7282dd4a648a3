"""Whatever happens to a table, the rows that differ are those by which its versions differ."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.lake.commit.committer import Committer
from cdc.lake.commit.snapshot import LogReader
from tests.unit.lake.changed.two_versions import check_all, restore
from tests.unit.lake.commit.combining import combine, place
from tests.unit.lake.commit.small_table import at, make, rows

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "combine", "restore", "checkpoint"]),
        st.randoms(),
    ),
    min_size=2,
    max_size=9,
)
EXAMPLES = 25


class OurTable:
    """A table with vectors, whose rows repeat each other."""

    def __init__(self, path: Path) -> None:
        self.path, self.committer = path, make(path)

    def write(self, random: Any) -> None:  # noqa: ANN401 - hypothesis has no type for it
        """Add some rows and delete some others in one commit."""
        files = self.committer.open().files
        deleted = {path: self._some_live(path, random) for path in files}
        new = rows(self.committer, [random.randrange(4) for _ in range(random.randrange(5))])
        self.committer.commit(new, deleted, at(1))

    def _some_live(self, path: str, random: Any) -> list[int]:  # noqa: ANN401
        file = self.committer.open().files[path]
        share = random.choice([0, 0.3, 1])
        gone = self.committer.deleted_rows(file)
        return [n for n in range(file.records) if n not in gone and random.random() < share]

    def combine(self, random: Any) -> None:  # noqa: ANN401
        """Make one file of two, and perhaps delete rows of them before it is in their place."""
        files = list(self.committer.open().files)
        if len(files) > 1:
            made = combine(self.committer, random.sample(files, 2))
            for _ in range(random.randrange(3)):
                self.write(random)
            place(self.committer, made)

    def restore(self, random: Any) -> None:  # noqa: ANN401
        restore(self.path, random.randrange(self.version() + 1))
        self.committer = Committer(str(self.path))

    def checkpoint(self, random: Any) -> None:  # noqa: ANN401
        version = random.randrange(self.version() + 1)
        DeltaTable(str(self.path), version=version).create_checkpoint()

    def version(self) -> int:
        return LogReader(str(self.path)).newest().version


@settings(max_examples=EXAMPLES, deadline=None)
@given(steps=STEPS)
def test_a_table_that_the_job_commits_to(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]
) -> None:
    table = OurTable(tmp_path_factory.mktemp("t") / "t")
    table.committer.commit(rows(table.committer, [0, 1, 1, 2]), {}, at(1))
    for step, random in steps:
        getattr(table, step)(random)

    check_all(table.path, range(table.version() + 1))


def some(random: Any) -> pa.Table:  # noqa: ANN401
    numbers = [random.choice([0, 1, 2, None]) for _ in range(random.randrange(1, 5))]
    return pa.table(
        {"id": pa.array(numbers, pa.int64()), "text": [random.choice("ab") for _ in numbers]}
    )


def append(path: str, random: Any) -> None:  # noqa: ANN401
    write_deltalake(path, some(random), mode="append")


def overwrite(path: str, random: Any) -> None:  # noqa: ANN401
    write_deltalake(path, some(random), mode="overwrite")


def delete(path: str, random: Any) -> None:  # noqa: ANN401
    DeltaTable(path).delete(random.choice(["id = 1", "text = 'a'", "id IS NULL", None]))


def merge(path: str, random: Any) -> None:  # noqa: ANN401
    source = pa.table({"id": [random.randrange(4)], "text": ["merged"]})
    merger = DeltaTable(path).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merger.when_matched_update_all().when_not_matched_insert_all().execute()


def optimize(path: str, _random: Any) -> None:  # noqa: ANN401
    DeltaTable(path).optimize.compact()


def back(path: str, random: Any) -> None:  # noqa: ANN401
    table = DeltaTable(path)
    if table.version():
        table.restore(random.randrange(table.version()))


def checkpoint(path: str, random: Any) -> None:  # noqa: ANN401
    DeltaTable(path, version=random.randrange(DeltaTable(path).version() + 1)).create_checkpoint()


BY_DELTA_RS: list[Callable[[str, Any], None]] = [
    append,
    append,
    overwrite,
    delete,
    merge,
    optimize,
    back,
    checkpoint,
]


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    steps=st.lists(st.tuples(st.sampled_from(BY_DELTA_RS), st.randoms()), min_size=2, max_size=8)
)
def test_a_table_that_delta_rs_commits_to(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[Callable[[str, Any], None], Any]],
) -> None:
    path = tmp_path_factory.mktemp("t") / "t"
    write_deltalake(str(path), pa.table({"id": [1, 1, 2], "text": ["a", "a", "b"]}))
    for step, random in steps:
        step(str(path), random)

    check_all(path, range(DeltaTable(str(path)).version() + 1))
