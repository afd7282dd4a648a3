"""What is installed is newer than the holes that are known in what it is made of."""

import re
from pathlib import Path

import pytest

from cdc.stack.artifacts.lock_file import CONNECT, CONVERTER, DEBEZIUM, KAFKA, SPARK, set_dir

HOLES = [
    (DEBEZIUM, "postgresql", (42, 7, 13), "CVE-2026-54291, CVE-2025-49146, CVE-2024-1597"),
    (CONNECT, "kafka-clients", (4, 0), "CVE-2025-27817, CVE-2025-27818, CVE-2023-25194"),
    (KAFKA, "kafka-clients", (4, 0), "CVE-2025-27819"),
    (SPARK, "kafka-clients", (3, 9, 1), "CVE-2025-27817"),
    (CONVERTER, "avro", (1, 11, 4), "CVE-2024-47561"),
    (CONNECT, "log4j-core", (2, 17, 1), "CVE-2021-44228, CVE-2021-44832"),
    (KAFKA, "log4j-core", (2, 17, 1), "CVE-2021-44228, CVE-2021-44832"),
]
"""Set, jar, the first version without the hole, and the hole."""


@pytest.mark.parametrize(("of", "jar", "fixed", "hole"), HOLES)
def test_a_known_hole_is_closed(of: str, jar: str, fixed: tuple[int, ...], hole: str) -> None:
    versions = list(_versions(set_dir(of), jar))

    assert versions, f"{of} has no {jar}"
    assert min(versions) >= fixed, hole


def test_avro_in_spark_too() -> None:
    import pyspark  # noqa: PLC0415 - slow to import

    assert min(_versions(Path(pyspark.__file__).parent / "jars", "avro")) >= (1, 11, 4)


def _versions(folder: Path, jar: str) -> list[tuple[int, ...]]:
    found = (re.fullmatch(rf"{jar}-([\d.]+)\.jar", file.name) for file in folder.rglob("*.jar"))
    return [tuple(int(part) for part in one[1].split(".")) for one in found if one]
