"""What a run shows: tables, plots and the page."""

import re
import time
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from bench.__main__ import selected
from bench.core.figure import Figure, Measured, NotMeasured
from bench.core.result_file import Record
from bench.core.room import Benchmark, Room
from bench.core.rows import MEMORY_ROWS, PEER_ROWS, ROWS
from bench.core.sizes import TINY
from bench.derived.rows import DERIVED_ROWS
from bench.flame.graph import draw, tree
from bench.flame.jvm_stacks import folded
from bench.flame.stacks import Stacks, inside, of_this_thread
from bench.peers.peers import PEERS
from bench.registry import BENCHMARKS
from bench.report import page
from bench.report.tables import reach_lines, reach_table
from bench.run import Publication, run, without_places
from bench.whole.memory import memory_over

MEASURED = Measured.of(
    [
        Figure(name="round", way="ours", unit="s", samples=(0.5,)),
        Figure(name="round", way="before", unit="s", samples=(20.0,)),
        Figure(
            name="freshness",
            way="ours",
            unit="s",
            samples=(1.0, 2.0, 3.0),
            parameters={"rate": 500, "tables": 8},
        ),
        NotMeasured(name="idle", why="this run was short"),
    ]
)


def room(tmp_path: Path) -> Room:
    console = Console(file=StringIO(), width=160)
    return Room(root=tmp_path / "work", sizes=TINY, seed=1, console=console)


def test_every_row_names_benchmarks_that_exist() -> None:
    extra = (PEERS, memory_over(60))
    known = {benchmark.name for benchmark in (*BENCHMARKS, *extra)}
    rows = (*ROWS, *DERIVED_ROWS, *MEMORY_ROWS, *PEER_ROWS)

    assert {name for row in rows for name in row.benchmarks} <= known
    assert len(known) == len(BENCHMARKS) + 2


def test_a_line_has_figure_ratio_reach_and_whether_it_is_met() -> None:
    lines = {line[0]: line[1:] for line in reach_lines(ROWS, MEASURED)}

    assert lines["a round of 2,500 events over 7 tables, beside before"] == (
        "0.5000 s beside 20.0 s",
        "40.00",
        "at least 20 times cheaper",
        "met",
    )
    assert lines["freshness, 500 changes/s, 8 tables, p50"][-1] == "not met"
    assert lines["idle: 50 tables, no changes, the job"][0] == "not measured"


def test_the_table_is_printed_whole(tmp_path: Path) -> None:
    output = tmp_path / "table.txt"
    with output.open("w") as file:
        Console(file=file, width=200).print(reach_table(ROWS, MEASURED))

    assert "40.00" in output.read_text()
    assert "not met" in output.read_text()


def test_one_benchmark_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    def fails(_: Room) -> "list[Figure]":
        raise RuntimeError("no server\nmore of it")

    benchmarks = [
        Benchmark(name="first", title="", measure=lambda _: iter(fails(_))),
        Benchmark(name="second", title="", measure=lambda _: iter(MEASURED.figures[:1])),
    ]

    measured, _ = run(benchmarks, room(tmp_path))

    assert measured.left_out == (NotMeasured(name="first", why="it failed: no server"),)
    assert measured.figures[1:-1] == MEASURED.figures[:1]
    durations = [(one.name, one.way) for one in (measured.figures[0], measured.figures[-1])]
    assert durations == [("duration", "first"), ("duration", "second")]


def test_a_row_without_its_figures_says_why() -> None:
    left = Measured((), (NotMeasured(name="round", why="it failed: no server"),))
    lines = {line[0]: line[1] for line in reach_lines(ROWS, left)}

    assert lines["the same round, landed to published"] == "not measured: it failed: no server"
    assert lines["idle: 50 tables, no changes, the job"] == "not measured"


def test_a_reason_names_no_place_of_a_machine() -> None:
    text = "job died (see /somewhere/bench/state/logs/job.log); 3/4 done by http://127.0.0.1:80/a"

    assert without_places(text) == "job died (see job.log); 3/4 done by http://127.0.0.1:80/a"


def test_no_benchmark_begins_when_the_time_of_the_run_is_over(tmp_path: Path) -> None:
    one = Benchmark(name="late", title="", measure=lambda _: iter(MEASURED.figures))
    over = replace(room(tmp_path), ends=time.monotonic() - 1)

    measured, _ = run([one], over)

    assert measured.figures == ()
    assert [left.name for left in measured.left_out] == ["late"]


def test_a_run_is_published_as_json_plots_and_page(tmp_path: Path) -> None:
    folder, text = tmp_path / "benchmarks", tmp_path / "benchmarks.md"
    text.write_text("# Title\n\n<!-- begin bench -->\nold\n<!-- end bench -->\n\nend\n")
    publication = Publication(name="bench", rows=ROWS, folder=folder, flames=tmp_path)

    publication.write(MEASURED, Record(TINY, seed=1))

    assert {path.name for path in folder.iterdir()} == {
        "bench.json",
        "freshness.svg",
        "freshness.png",
        "before.svg",
        "before.png",
    }
    assert (folder / "freshness.svg").read_text().startswith("<?xml")
    written = text.read_text()
    assert "old" not in written
    assert "![freshness](benchmarks/freshness.svg)" in written
    assert "| idle | this run was short |" in written
    assert written.endswith("<!-- end bench -->\n\nend\n")


def test_a_page_without_marks_is_not_overwritten() -> None:
    with pytest.raises(ValueError, match="no marks"):
        page.fill("# A page", "bench", "text")


def test_benchmarks_are_chosen_by_name() -> None:
    assert [one.name for one in selected("apply,limits", quick=False)] == ["apply", "limits"]
    assert len(selected("", quick=True)) < len(selected("", quick=False)) == len(BENCHMARKS)
    with pytest.raises(Exception, match="nothing is none of"):
        selected("nothing", quick=False)


STACKS: Stacks = Stacks({("a", "a.b"): 3, ("a", "a.c"): 1})


def test_a_flame_graph_is_as_wide_as_what_was_seen() -> None:
    root = tree(STACKS)
    assert (root.count, root.inside["a"].count) == (4, 4)
    assert root.inside["a"].inside["a.b"].count == 3

    widths = [float(w) for w in re.findall(r'<rect x="[\d.]+" y="\d+" width="([\d.]+)"',
                                           draw(STACKS, "t"))]  # fmt: skip
    assert widths == [1199.5, 899.5, 299.5]


def test_what_is_around_a_frame_is_left_away() -> None:
    stacks: Stacks = Stacks({("main", "apply", "read"): 2, ("other", "apply", "read"): 1,
                             ("main", "write"): 5})  # fmt: skip

    assert inside(stacks, "apply") == {("apply", "read"): 3}


def test_stacks_of_the_flight_recorder_are_counted() -> None:
    text = "org.x.Outer.run\torg.x.Inner.work\norg.x.Outer.run\norg.x.Outer.run\n"

    assert folded(text) == {("org.x.Outer.run", "org.x.Inner.work"): 1, ("org.x.Outer.run",): 2}
    assert folded("") == {}
    assert folded("a.B$$Lambda$12/0x7f.93.apply\ta.C.run\na.B$$Lambda.7.apply\ta.C.run") == {
        ("a.B$lambda.apply", "a.C.run"): 2
    }


def test_the_stack_of_a_thread_is_sampled() -> None:
    def seen() -> bool:
        return any("busy" in name for stack in list(stacks) for name in stack)

    def busy() -> None:
        ends = time.monotonic() + 30
        while not seen() and time.monotonic() < ends:
            sum(range(1000))

    with of_this_thread() as stacks:
        busy()

    assert seen()
