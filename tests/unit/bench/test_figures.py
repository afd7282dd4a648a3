"""The benchmark's statistics, its result file, and the ratios of what is to be reached."""

import json
from pathlib import Path

import pytest

from bench.core import result_file
from bench.core.alternate import alternate
from bench.core.figure import Figure, Measured, NotMeasured, Parameter
from bench.core.machine import load, machine, versions
from bench.core.reach import NOT_MEASURED, Result, Row, below, compared, grown
from bench.core.rows import MEMORY_ROWS, PEER_ROWS, ROWS
from bench.core.sizes import BY_NAME, TINY
from bench.core.statistics import median, quantile, slope, steady_peak


def figure(
    *samples: float,
    name: str = "apply",
    way: str = "driver",
    unit: str = "s",
    **parameters: Parameter,
) -> Figure:
    return Figure(name=name, way=way, unit=unit, samples=samples, parameters=parameters)


def test_quantiles_are_between_samples() -> None:
    assert quantile([4, 1, 3, 2], 0.5) == 2.5
    assert (quantile([1, 2], 0), quantile([1, 2], 1)) == (1, 2)
    assert median([7]) == 7
    with pytest.raises(ValueError, match="no quantile"):
        quantile([], 0.5)


def test_a_slope_is_that_of_the_nearest_line() -> None:
    assert slope([(0, 1), (1, 3), (2, 5)]) == pytest.approx(2)
    assert slope([(1, 5), (1, 9)]) == 0


def test_a_peak_of_a_moment_is_no_peak() -> None:
    assert steady_peak([10.0] * 8 + [99.0] + [10.0] * 8) == 10
    assert steady_peak([10.0] * 8 + [50.0] * 6 + [10.0] * 8) == 50


def test_every_repetition_has_every_way_once_and_orders_differ() -> None:
    ways = ["a", "b", "c", "d"]
    order = list(alternate(ways, 6, seed=1))

    by_repetition = [tuple(way for n, way in order if n == repetition) for repetition in range(6)]
    assert [sorted(one) for one in by_repetition] == [ways] * 6
    assert len(set(by_repetition)) > 1
    assert order == list(alternate(ways, 6, seed=1))


def test_the_ratio_says_how_many_times_better_ours_is() -> None:
    fast, slow = figure(0.1, 0.1, 0.9), figure(6.0)

    cheaper = compared(fast, slow, at_least=50)
    assert cheaper.ratio == pytest.approx(60)
    assert cheaper.met is True
    assert compared(fast, slow, at_least=61).met is False
    faster = compared(figure(30.0), figure(20.0), at_least=2, more_is_better=True)
    assert faster.ratio == pytest.approx(1.5)
    assert faster.met is False


def test_growth_and_limits_are_upper_bounds() -> None:
    assert grown(figure(1.0), figure(1.4), at_most=1.5).met is True
    assert grown(figure(1.0), figure(1.6), at_most=1.5).met is False
    assert below(figure(1.0, 2.0, 9.0), 8, share=0.99).met is False
    assert below(figure(1.0, 2.0, 9.0), 8).met is True


@pytest.mark.parametrize("row", [*ROWS, *MEMORY_ROWS, *PEER_ROWS], ids=lambda row: row.what)
def test_a_row_without_figures_is_not_measured(row: Row) -> None:
    assert row.compute(Measured()) == NOT_MEASURED


def row_of(text: str) -> Row:
    (found,) = [row for row in (*ROWS, *MEMORY_ROWS, *PEER_ROWS) if row.what.startswith(text)]
    return found


def test_a_row_takes_the_cell_that_it_names() -> None:
    cells = [
        figure(0.02, keys="uniform", rows=10_000_000, changes=10_000),
        figure(5.0, keys="hot", rows=10_000_000, changes=10_000),
        figure(1.2, way="tuned MERGE", keys="uniform", rows=10_000_000, changes=10_000),
        figure(9.9, way="tuned MERGE", keys="uniform", rows=1_000_000, changes=10_000),
    ]

    result = row_of("10,000 uniform changes into 10 M rows, beside tuned").compute(
        Measured.of(cells)
    )

    assert result.ratio == pytest.approx(60)
    assert result.met is True


def test_freshness_over_fifty_tables_is_not_that_over_eight() -> None:
    both = Measured.of(
        [
            figure(1.0, name="freshness", way="ours", rate=500, tables=8),
            figure(7.0, name="freshness", way="ours", rate=500, tables=50),
        ]
    )

    assert row_of("freshness, 500 changes/s, 8 tables, p50").compute(both).met is True
    assert row_of("freshness, 500 changes/s, 50 tables, p50").compute(both).met is False


def test_memory_is_called_flat_only_after_an_hour() -> None:
    def over(minutes: int, grows: float) -> Result:
        samples = [2**30 + grows * place for place in range(minutes * 12)]
        seen = figure(
            *samples, name="memory over time", way="ours", unit="B", every_seconds=5, rate=500
        )
        return row_of("memory of the job over an hour").compute(Measured.of([seen]))

    assert over(10, 0).met is None
    assert over(60, 0).met is True
    assert over(60, 2**20).met is False


def test_torn_cuts_of_ours_are_never_met() -> None:
    def beside(*ours: float) -> bool | None:
        figures = [
            figure(*ours, name="torn cuts", way="ours", unit="share"),
            figure(0.9, name="torn cuts", way="Flink", unit="share"),
        ]
        return row_of("cuts that are torn").compute(Measured.of(figures)).met

    assert beside(0.0, 0.0) is True
    assert beside(0.0, 0.1) is False


def test_two_figures_of_one_name_are_an_error_and_not_a_choice() -> None:
    with pytest.raises(ValueError, match="2 figures"):
        Measured.of([figure(1.0, rows=1), figure(2.0, rows=2)]).one("apply", "driver")


def test_a_figure_needs_a_sample() -> None:
    with pytest.raises(ValueError, match="no sample"):
        figure()


def test_a_result_keeps_all_samples_and_what_was_left_out(tmp_path: Path) -> None:
    left_out = NotMeasured(name="Iceberg MERGE", why="its jar did not arrive")
    measured = Measured.of([figure(1.0, 3.0, 2.0, rows=10), left_out])
    record = result_file.Record(TINY, seed=7)

    result_file.write(tmp_path / "bench.json", record.values(measured))
    values = result_file.read(tmp_path / "bench.json")

    assert Measured.from_json(values) == measured
    assert (values["seed"], values["sizes"]["name"]) == (7, "tiny")
    assert values["figures"][0]["median"] == 2.0
    assert len(values["load_before"]) == len(values["load_after"]) == 3


def test_an_incomplete_result_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    path.write_text(json.dumps({"format": 1, "figures": []}))

    with pytest.raises(ValueError, match="began, ended"):
        result_file.read(path)


def test_the_machine_is_described_without_its_name() -> None:
    import socket  # noqa: PLC0415

    text = json.dumps([machine(), versions(), load()])

    assert machine()["cpus"] >= 1
    assert versions()["pyspark"]
    assert socket.gethostname() not in text


def test_sizes_are_found_by_their_names() -> None:
    assert {name: sizes.name for name, sizes in BY_NAME.items()} == {n: n for n in BY_NAME}
