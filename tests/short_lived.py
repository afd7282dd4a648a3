"""Settings of JVMs that live for minutes: less compilation, which takes half of their time."""

from typing import Any, Final

JAVA_OPTIONS: Final = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


def spark(driver_memory: str) -> dict[str, Any]:
    """The ``spark`` part of a configuration."""
    return {"master": "local[2]", "driver_memory": driver_memory, "conf": JAVA_OPTIONS}
