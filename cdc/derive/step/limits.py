"""Define how much one step may take, and what it took."""

from dataclasses import dataclass
from pathlib import Path

from cdc.derive.engine.large import Large


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Says how much one step may take."""

    memory_mb: int  # of what is kept for all steps; a whole query may take as much beside it
    full_rows: int
    kept_hours: int  # how long the files of old versions are kept
    scratch: Path
    share: float = 0.2  # of an input's rows: more changed ones are not looked at one by one
    cross_check: int = 0  # one cut in so many is calculated as a whole too; 0 for none
    measured: bool = False  # a step is a whole query where that was seen to be cheaper
    large: Large | None = None  # what another engine calculates
    lanes: int = 1  # so many steps may run beside each other


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Says how a step was done, for those who ask what a table costs."""

    mode: str  # "scoped" or "whole"
    why: str = ""  # it was not scoped
    changed: int = 0  # rows of inputs that were removed or added; 0 if whole
    keys: int = 0  # values of the scope key that were calculated; 0 if whole
    seconds: float = 0.0
    engine: str = "local"  # or "spark"
