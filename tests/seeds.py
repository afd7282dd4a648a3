"""Choose the seed of a run's random decisions: ``--seed``, or one drawn for the whole run."""

import random

import pytest

_DRAWN = pytest.StashKey[int]()


def seed_of(config: pytest.Config) -> int:
    """Return the run's seed, the same at every call, so that one number replays the run."""
    given: int | None = config.getoption("--seed")
    if given is not None:
        return given
    return config.stash.setdefault(_DRAWN, random.SystemRandom().randrange(10**6))
