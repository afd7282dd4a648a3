"""Jars of what ours is compared with; ``artifacts.lock`` beside this file lists them by set."""

from pathlib import Path

from cdc.stack.artifacts.extra_sets import extra_jars

ICEBERG = "iceberg"
FLINK = "flink"


def jars(name: str) -> list[Path]:
    """Return the jars of a set; raises UNREACHABLE if they do not arrive as the lock has them."""
    return extra_jars(Path(__file__).with_name("artifacts.lock"), name)
