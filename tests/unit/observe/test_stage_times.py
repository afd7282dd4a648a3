"""Stage times are counted in buckets."""

import pytest

from cdc.observe.stage_times import BOUNDS, Histogram, Stage, StageTimes


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(0.0, "0.001"), (0.001, "0.001"), (0.0011, "0.002"), (50.0, "50"), (50.1, "inf")],
)
def test_a_time_is_in_the_bucket_of_the_smallest_bound_not_below_it(
    seconds: float, bucket: str
) -> None:
    times = Histogram()
    times.add(seconds)
    counted = {name: count for name, count in times.as_json()["buckets"].items() if count}
    assert counted == {bucket: 1}


def test_the_bounds_ascend() -> None:
    assert list(BOUNDS) == sorted(set(BOUNDS))


def test_a_stage_that_fails_is_counted_too() -> None:
    times = StageTimes()
    with pytest.raises(ZeroDivisionError), times.timed(Stage.COMMIT):
        _ = 1 / 0
    counts = {name: found["count"] for name, found in times.as_json().items()}
    assert counts == {**dict.fromkeys(map(str, Stage), 0), "commit": 1}
