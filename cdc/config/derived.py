"""Define the section of the configuration file about derived tables."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from cdc.config.section import Section


class Derived(Section):
    """Says how the job derives tables from the captured ones."""

    path: Path = Path("derived")
    """The directory of the definitions: one file ``<schema>.<table>.sql`` for each table,
    ``.py`` for a fold."""
    seconds: float = Field(1.0, gt=0)
    """How long a cut waits for its derived tables. Those that take longer are published as
    ``lagging``, at an older cut, and catch up; no cut waits until they are in time again."""
    memory_mb: int = Field(512, ge=64)
    """The memory for calculating them, in MiB. What does not fit is kept in ``state_dir``."""
    full_rows: int = Field(1_000_000, ge=1)
    """The most rows of all its inputs with which a table whose ``refresh`` is ``incremental`` may
    be calculated as a whole."""
    engine: Literal["auto", "local", "spark"] = "auto"
    """What calculates a table as a whole: this process (``local``), Spark, or (``auto``) Spark
    where it is a cluster or the inputs have more than ``local_rows`` rows. What Spark cannot
    calculate with the same meaning is calculated by this process; ``derived explain`` says why."""
    local_rows: int = Field(5_000_000, ge=0)
    """The most rows of all its inputs with which a table is calculated by this process as a whole,
    where ``engine`` is ``auto``."""
    cross_check: int = Field(0, ge=0)
    """One cut in so many calculates tables with a scope key as a whole too, and stops a table where
    the two differ. 0 never does."""
