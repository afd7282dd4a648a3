"""A change of the code that some test must notice."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """``old`` occurs once in ``file`` and is replaced by ``new``; one of ``tests`` must fail.

    ``tests`` are arguments of pytest.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
