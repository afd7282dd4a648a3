"""Which micro-batches are small: by the checkpoint of the query, and by the records before."""

import json
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from cdc.land import small_batches
from cdc.land.micro_batches import MicroBatch, MicroBatches
from cdc.land.small_batches import SmallBatches


def write_ends(checkpoint: Path, batch: int, **ends: int) -> None:
    """Write a micro-batch's ends as Spark does."""
    folder = checkpoint / "offsets"
    folder.mkdir(exist_ok=True)
    lines = ["v1", json.dumps({"batchWatermarkMs": 0}), json.dumps(parted(ends))]
    (folder / str(batch)).write_text("\n".join(lines))


def parted(ends: dict[str, int]) -> dict[str, dict[str, int]]:
    return {topic: {"0": end} for topic, end in ends.items()}


def test_a_batch_begins_at_the_end_of_the_one_before(tmp_path: Path) -> None:
    batches = MicroBatches(tmp_path, {"a": 10})
    write_ends(tmp_path, 0, a=15, b=3)
    write_ends(tmp_path, 1, a=15, b=4)

    first, second = batches.batch(0), batches.batch(1)

    assert first == MicroBatch(ranges={"a": range(10, 15), "b": range(3)}, exact=False)
    assert second == MicroBatch(ranges={"a": range(15, 15), "b": range(3, 4)}, exact=True)
    assert [first.most_records, second.most_records] == [5 + 3, 1]


def test_a_topic_that_was_empty_from_the_beginning_is_exact(tmp_path: Path) -> None:
    write_ends(tmp_path, 0, a=15, b=0)

    assert MicroBatches(tmp_path, {"a": 10}).batch(0) == MicroBatch(
        ranges={"a": range(10, 15), "b": range(0)}, exact=True
    )


@pytest.mark.parametrize("text", ["", "v1\n{}\n[]", 'v1\n{}\n{"a": 3}', "v1\n{}\nno JSON"])
def test_a_batch_is_unknown_where_the_checkpoint_is_not_as_expected(
    tmp_path: Path, text: str
) -> None:
    batches = MicroBatches(tmp_path, {})
    assert batches.batch(0) is None
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text(text)

    assert batches.batch(0) is None


class Batch:
    """Stand in for a micro-batch's DataFrame."""

    def __init__(self, *values: bytes, error: str = "") -> None:
        self._values = values
        self._error = error

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        if self._error:
            raise PySparkException(self._error)
        return pa.table({"value": pa.array(self._values, pa.binary())})


def brought(small: SmallBatches, batch: Batch, most: int | None) -> bool:
    return small.rows(cast("Any", batch), most) is not None


@pytest.mark.parametrize(
    ("most", "is_small"), [(None, False), (0, True), (9, True), (10, True), (11, False)]
)
def test_a_batch_is_small_up_to_a_number_of_records(most: int | None, is_small: bool) -> None:
    assert brought(SmallBatches(10), Batch(b"x"), most) is is_small


def test_a_batch_of_large_records_is_left_to_spark_but_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(small_batches, "MOST_BYTES", 100_000)
    small = SmallBatches(1000)
    assert brought(small, Batch(b"x" * 50_000), 1)

    tries = [brought(small, Batch(b"x"), 20) for _ in range(6)]

    assert tries[0] is False
    assert tries[-1] is True


def test_a_batch_that_spark_does_not_bring_is_left_to_spark() -> None:
    small = SmallBatches(1000)
    refused = Batch(error="Total size ... is bigger than spark.driver.maxResultSize (1024.0 MiB)")

    assert not brought(small, refused, 500)
    assert not brought(small, Batch(b"x"), 500)
    assert brought(small, Batch(b"x"), 1)


def test_any_other_error_is_raised() -> None:
    with pytest.raises(PySparkException):
        brought(SmallBatches(10), Batch(error="the broker is gone"), 1)
