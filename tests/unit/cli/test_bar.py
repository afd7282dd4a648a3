"""An operation's progress is shown as a bar on a terminal and as lines in a pipe."""

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from cdc.cli.show import bar
from cdc.cli.show.follow_operation import new_operation
from cdc.state.operation import OperationState, Progress
from tests.unit.desk_room import RUNNING

OPERATION = new_operation("resnapshot", ["shop.orders"])


def shown(draw: Callable[[Console], None], **options: Any) -> str:  # noqa: ANN401 - of Console
    """Return what a console of 100 columns printed, without trailing spaces."""
    console = Console(file=io.StringIO(), width=100, color_system=None, **options)
    draw(console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines())


def drawn(progress: Progress, *, job_alive: bool = True) -> str:
    return shown(lambda c: c.print(bar.drawn(OPERATION, progress, job_alive=job_alive)))


def test_the_bar_shows_phase_progress_rate_and_time_left() -> None:
    assert drawn(RUNNING) == (
        "resnapshot shop.orders (2 of 3): reading\n"
        "━━━━━━━━━━━━━╸                  45%  12 chunks  450,000 of 1,000,000 rows  50,000 rows/s"
        "  11 s left"
    )


def test_the_bar_omits_what_is_unknown() -> None:
    unknown = replace(RUNNING, rows_expected=None, chunks=1, tables=1, tables_done=0)
    paused = replace(RUNNING, state=OperationState.PAUSED)
    waiting = Progress(id=RUNNING.id, state=OperationState.WAITING)

    assert drawn(unknown) == (
        "resnapshot shop.orders: reading\n1 chunk  450,000 rows  50,000 rows/s"
    )
    assert drawn(paused).startswith("resnapshot shop.orders (2 of 3): paused, reading\n")
    assert "rows/s" not in drawn(paused)
    assert drawn(waiting).strip() == "resnapshot waiting"
    assert "the job is not running" in drawn(waiting, job_alive=False)
    assert "rows/s" not in drawn(RUNNING, job_alive=False)
    assert "the job is not running" not in drawn(waiting)


def test_the_bar_is_redrawn_in_place_on_a_terminal() -> None:
    def draw(console: Console) -> None:
        with bar.display(
            new_operation("resnapshot", ["shop.orders"]), console, as_json=False
        ) as display:
            display.show(RUNNING, job_alive=True)
            display.show(replace(RUNNING, rows=500_000), job_alive=True)

    text = shown(draw, force_terminal=True, force_interactive=True)
    assert "45%" in text
    assert "50%" in text
    assert "\x1b[2K" in text  # the previous line is erased


def test_a_pipe_gets_a_line_when_phase_or_table_change() -> None:
    def draw(console: Console) -> None:
        with bar.display(
            new_operation("resnapshot", ["shop.orders"]), console, as_json=False
        ) as display:
            for progress, alive in (
                (RUNNING, True),
                (replace(RUNNING, rows=500_000), True),
                (replace(RUNNING, phase="comparing"), True),
                (replace(RUNNING, phase="comparing"), False),
                (replace(RUNNING, table="shop.items", tables_done=2), True),
                (replace(RUNNING, state=OperationState.DONE), True),
            ):
                display.show(progress, job_alive=alive)

    assert shown(draw).splitlines() == [
        "shop.orders (2 of 3): reading",
        "shop.orders (2 of 3): comparing",
        "the job is not running; the operation continues after wal2lake up",
        "shop.items (3 of 3): reading",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (61, "1 min 01 s"), (7500, "2 h 05 min")]
)
def test_durations_are_readable(seconds: float, text: str) -> None:
    assert bar.duration(seconds) == text
