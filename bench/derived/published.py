"""What others have published. Pure."""

from collections.abc import Mapping
from typing import Final

FLINK: Final[Mapping[str, int]] = {
    "q4": 34_330,
    "q5": 22_140,
    "q7": 12_330,
    "q9": 14_240,
    "q18": 53_700,
    "q20": 18_980,
}
"""Events per second and core, as GUIDE_V1 of nexmark lists them: 100 M events into no table."""
