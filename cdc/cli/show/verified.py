"""Verifies derived tables by what an operator names: the source, or Spark."""

from collections.abc import Sequence
from enum import Enum

from cdc.cli.show.wait_line import wait_line
from cdc.client.derived.verify import DerivedReport, verify_by_source
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.observe import logs
from cdc.state.pipeline import resolve


class Engine(Enum):
    """Says what calculates in this process, as ``--engine`` names it."""

    LOCAL = "local"
    SPARK = "spark"


def by_source_now(
    config: Config, names: Sequence[str], at: str | None, timeout: float, engine: Engine
) -> DerivedReport:
    """Let the source calculate tables, at a cut of now. Raises CONFIG for another cut or engine."""
    if at is not None or engine is not Engine.LOCAL:
        raise CdcError(
            ErrorKind.CONFIG,
            "the source can only calculate by itself, as of now",
            remedy="leave out --at and --engine, or --source",
        )
    with wait_line("verifying") as tell:
        return verify_by_source(resolve(config), names, timeout=timeout, tell=tell)


def by_spark(config: Config, names: Sequence[str], at: str | None) -> DerivedReport:
    """Let Spark calculate tables at a cut."""
    from cdc.client.derived.by_spark import verify_by_spark  # noqa: PLC0415 - loads pyspark

    logs.quiet()
    return verify_by_spark(config, names, at)
