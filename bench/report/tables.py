"""Makes tables of a run, for a terminal and for a page."""

from collections.abc import Iterable, Sequence

from rich.table import Table

from bench.core.figure import Figure, Measured
from bench.core.reach import NOT_MEASURED, Row, number
from bench.core.statistics import quantile

HEAD = ("what", "measured", "ratio", "reach", "met")


def reach_lines(rows: Iterable[Row], measured: Measured) -> list[tuple[str, ...]]:
    """Return the cells of every row of what is to be reached."""
    lines: list[tuple[str, ...]] = []
    for row in rows:
        result = row.compute(measured)
        ratio = "" if result.ratio is None else f"{result.ratio:,.2f}"
        met = "-" if result.met is None else "met" if result.met else "not met"
        figure = _why_not(row, measured) if result is NOT_MEASURED else result.figure
        lines.append((row.what, figure, ratio, row.reach, met))
    return lines


def _why_not(row: Row, measured: Measured) -> str:
    """Return that a row was not measured, and why, if one of its benchmarks was left out."""
    why = [one.why for one in measured.left_out if one.name in row.benchmarks]
    return ": ".join([NOT_MEASURED.figure, *why[:1]])


def reach_table(rows: Iterable[Row], measured: Measured) -> Table:
    """Return the table of what is to be reached."""
    table = Table(title="reach", title_justify="left")
    for name in HEAD:
        table.add_column(name, justify="right" if name == "ratio" else "left")
    for line in reach_lines(rows, measured):
        colour = {"met": "green", "not met": "red"}.get(line[-1], "dim")
        table.add_row(*line[:-1], f"[{colour}]{line[-1]}[/{colour}]")
    return table


def figure_table(title: str, figures: Sequence[Figure]) -> Table:
    """Return every figure with its median and its spread."""
    table = Table(title=title, title_justify="left")
    for name in FIGURE_HEAD:
        table.add_column(name)
    for line in map(figure_line, figures):
        table.add_row(*line)
    return table


FIGURE_HEAD = ("what", "way", "with", "median", "p95", "p99", "samples", "note")


def figure_line(figure: Figure) -> tuple[str, ...]:
    """Return the cells of one figure."""
    with_what = ", ".join(f"{name} {_plain(value)}" for name, value in figure.parameters.items())
    quantiles = (number(quantile(figure.samples, s), figure.unit) for s in (0.5, 0.95, 0.99))
    return (
        figure.name,
        figure.way,
        with_what,
        *quantiles,
        str(len(figure.samples)),
        figure.note,
    )


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in row) + " |"
                     for row in rows)  # fmt: skip


def _plain(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,}"
