"""The time of each stage of a round, from the job's own histograms."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from bench.core.figure import Figure, NotMeasured, Outcome
from cdc.state.directory import read_json

FILE: Final = "stages.json"
_QUANTILES: Final = ("p50", "p95", "p99")


def stage_figures(state: Path, tables: int) -> Iterator[Outcome]:
    """Yield the quantiles of each stage that the job has recorded in its state directory."""
    found = read_json(state / FILE)
    if found is None:
        yield NotMeasured(name="stages", why=f"this job writes no {FILE}")
        return
    stages = found.get("stages", found)
    for name, values in stages.items():
        samples = _samples(values)
        if samples:
            yield Figure(
                name="stage", way=name, unit="s", samples=samples, parameters={"tables": tables},
                note="p50, p95 and p99 of the job's histogram",
            )  # fmt: skip
        else:
            yield NotMeasured(name=f"stage {name}", why=f"{FILE} has no quantiles of it")


def _samples(values: object) -> tuple[float, ...]:
    if not isinstance(values, Mapping):
        return ()
    known: Mapping[str, Any] = values
    return tuple(float(known[name]) for name in _QUANTILES if known.get(name) is not None)
