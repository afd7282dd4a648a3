"""Landings that a start reads back are the ones that landed."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.land import read_back
from cdc.land.landing import Landing
from cdc.land.read_back import events_of, landings_beyond, last_offset
from tests.spark.land.test_landing_two_ways import BEGIN, Landed

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", params=[True, False], ids=["by this process", "by Spark"])
def landed(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Landed:
    log = tmp_path_factory.mktemp("read_back") / "log"
    return Landed(spark, log, in_memory=request.param)


def test_landings_are_read_back_with_their_events(spark: SparkSession, landed: Landed) -> None:
    found = landings_beyond(str(landed.log), BEGIN.landing)
    assert found == landed.landings
    for landing in found:
        assert landing.events is not None
        rows = spark.read.format("delta").load(str(landed.log))
        mine = rows.where(f"landing = {landing.number}").orderBy("topic", "offset")
        assert landing.events.equals(mine.toArrow().cast(landing.events.schema))


def test_landings_up_to_the_floor_are_left_out(landed: Landed) -> None:
    first, second = landed.landings
    assert landings_beyond(str(landed.log), first.number) == [second]


def test_events_that_are_many_stay_in_the_log(
    landed: Landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_back, "MOST_RECORDS", sum(map(_count, landed.landings)) - 1)
    assert [one.events for one in landings_beyond(str(landed.log), BEGIN.landing)] == [None, None]


def test_events_that_are_large_stay_in_the_log(
    landed: Landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_back, "MOST_BYTES", 1000)
    assert [one.events for one in landings_beyond(str(landed.log), BEGIN.landing)] == [None, None]


def test_no_data_file_is_opened_where_the_cut_has_everything(landed: Landed) -> None:
    files = sorted(landed.log.glob("*.parquet"))
    hidden = [file.rename(file.with_suffix(".hidden")) for file in files]
    try:
        assert files
        assert landings_beyond(str(landed.log), landed.position.landing) == []
        with pytest.raises(Exception, match="parquet"):
            landings_beyond(str(landed.log), BEGIN.landing)
    finally:
        for file in hidden:
            file.rename(file.with_suffix(".parquet"))


def test_the_last_offset_up_to_a_landing_is_found(landed: Landed) -> None:
    first, second = landed.landings
    both = first.topics.keys() & second.topics.keys()
    assert both
    for topic in both:
        assert last_offset(str(landed.log), topic, first.number) == first.topics[topic].last
        assert last_offset(str(landed.log), topic, second.number) == second.topics[topic].last
    assert last_offset(str(landed.log), "odd", first.number - 1) == -1
    assert last_offset(str(landed.log), "it's unknown", second.number) == -1


def test_events_of_one_topic_are_read_by_offset(landed: Landed) -> None:
    *_, last = landed.landings
    topic, span = max(last.topics.items(), key=lambda one: one[1].count)
    after = span.last - 3
    found = events_of(str(landed.log), topic, after, span.last - 1, most=100)
    assert found is not None
    assert found["offset"].to_pylist() == [after + 1, after + 2]
    assert set(found["topic"].to_pylist()) == {topic}
    assert events_of(str(landed.log), topic, after, span.last, most=2) is None
    nothing = events_of(str(landed.log), topic, span.last, span.last, most=0)
    assert nothing is not None
    assert len(nothing) == 0


def test_a_log_that_is_not_there_has_no_landing(tmp_path: Path) -> None:
    assert landings_beyond(str(tmp_path / "log"), 0) == []


def _count(landing: Landing) -> int:
    return landing.count
