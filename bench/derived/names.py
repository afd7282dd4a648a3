"""The names of ways, by which figures are found again. Pure."""

from typing import Final

DERIVED: Final = "derived"
"""Of the benchmark, and of its section in the documentation."""
KEPT: Final = "kept up"
WHOLE: Final = "full recompute"
SPARK: Final = "Spark job"
BY_SCOPE: Final = "by scope key"
AS_A_WHOLE: Final = "as a whole"
OURS: Final = "ours"
NONE: Final = "without"
ALL: Final = "with ten derived tables"
LAGGING: Final = "with ten, lagging"
