"""Puts the results of a run into docs/benchmarks.md, between its marks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.core.figure import Measured
from bench.core.reach import Row
from bench.report.tables import FIGURE_HEAD, HEAD, figure_line, markdown, reach_lines

_BEGIN: Final = "<!-- begin {} -->"
_END: Final = "<!-- end {} -->"


def fill(page: str, name: str, text: str) -> str:
    """Return the page with ``text`` between the marks of this name.

    Raises ValueError if the page has no such marks.
    """
    begin, end = _BEGIN.format(name), _END.format(name)
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"the page has no marks {begin} and {end}")
    return pattern.sub(lambda _: f"{begin}\n\n{text.strip()}\n\n{end}", page)


def section(
    rows: Iterable[Row], values: Mapping[str, Any], measured: Measured, plots: Sequence[Path]
) -> str:
    """Return the generated part of a page, for the results of one run."""
    parts = [
        _where(values),
        markdown(HEAD, reach_lines(rows, measured)),
        *(f"![{path.stem}]({path.parent.name}/{path.name})" for path in plots),
        "<details><summary>Every figure</summary>",
        markdown(FIGURE_HEAD, map(figure_line, measured.figures)),
        "</details>",
    ]
    if measured.left_out:
        lines = [(one.name, one.why) for one in measured.left_out]
        parts += ["Not measured in this run:", markdown(("what", "why"), lines)]
    return "\n\n".join(parts)


def _where(values: Mapping[str, Any]) -> str:
    machine, versions = values["machine"], values["versions"]
    load = [", ".join(map(str, values[name])) for name in ("load_before", "load_after")]
    facts = [
        f"{values['began']}, {values['seconds'] / 60:.0f} minutes,",
        f"sizes `{values['sizes']['name']}`, seed {values['seed']}.",
        f"{machine['cpus']} cores ({machine['processor']}), {machine['memory_gib']} GiB,",
        f"{machine['system']}. Load before: {load[0]} ({values['busy_before']:.0%} busy);",
        f"after: {load[1]}.",
        ", ".join(f"{name} {text}" for name, text in versions.items()) + ".",
    ]
    return "\n".join(facts)
