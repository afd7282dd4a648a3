"""One change of the code that some test has to notice."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """``old`` stands once in ``file`` and becomes ``new``; one of ``tests`` has to fail.

    ``tests`` are arguments of pytest.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
