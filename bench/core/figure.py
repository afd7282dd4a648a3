"""One thing that was measured, and all that was measured in a run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bench.core.statistics import median

Parameter = int | float | str
PER_SAMPLE: Final = "samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Holds the raw samples of one quantity, of one way, under some parameters."""

    name: str  # what was measured: "apply"
    way: str  # who did it: "driver", "tuned MERGE"
    unit: str
    samples: tuple[float, ...]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError(f"the figure {self.name} of {self.way} has no sample")

    @property
    def typical(self) -> float:
        """Return the median of the samples."""
        return median(self.samples)

    def has(self, parameters: Mapping[str, Parameter]) -> bool:
        """Return whether the figure was measured with these parameters, and perhaps others."""
        return all(self.parameters.get(name) == value for name, value in parameters.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class NotMeasured:
    """What was left out, and why: nothing is left out in silence."""

    name: str
    why: str


Outcome = Figure | NotMeasured


@dataclass(frozen=True, slots=True)
class Measured:
    """Holds all figures of a run, and what was left out."""

    figures: tuple[Figure, ...] = ()
    left_out: tuple[NotMeasured, ...] = ()

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> "Measured":
        """Sort outcomes into figures and what was left out."""
        found = list(outcomes)
        return cls(
            tuple(one for one in found if isinstance(one, Figure)),
            tuple(one for one in found if isinstance(one, NotMeasured)),
        )

    def plus(self, outcomes: Iterable[Outcome]) -> "Measured":
        """Return these and further outcomes."""
        more = Measured.of(outcomes)
        return Measured(self.figures + more.figures, self.left_out + more.left_out)

    def all_of(self, name: str, way: str | None = None, **parameters: Parameter) -> list[Figure]:
        """Return the figures of a name, of one way or all, with these parameters."""
        return [
            one
            for one in self.figures
            if one.name == name and (way is None or one.way == way) and one.has(parameters)
        ]

    def one(self, name: str, way: str, **parameters: Parameter) -> Figure | None:
        """Return the figure; None if it was not measured.

        Raises ValueError if the parameters leave more than one.
        """
        found = self.all_of(name, way, **parameters)
        if len(found) > 1:
            raise ValueError(f"{len(found)} figures are {name} of {way} with {parameters}")
        return found[0] if found else None

    def to_json(self) -> dict[str, Any]:
        """Return plain values for a result file."""
        return {
            "figures": [
                {
                    "name": one.name,
                    "way": one.way,
                    "unit": one.unit,
                    "parameters": dict(one.parameters),
                    "median": one.typical,
                    PER_SAMPLE: list(one.samples),
                    "note": one.note,
                }
                for one in self.figures
            ],
            "left_out": [{"name": one.name, "why": one.why} for one in self.left_out],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Measured":
        """Read what ``to_json`` returned."""
        figures = (
            Figure(
                name=one["name"],
                way=one["way"],
                unit=one["unit"],
                samples=tuple(one[PER_SAMPLE]),
                parameters=one["parameters"],
                note=one["note"],
            )
            for one in values["figures"]
        )
        left_out = (NotMeasured(name=one["name"], why=one["why"]) for one in values["left_out"])
        return cls(tuple(figures), tuple(left_out))
