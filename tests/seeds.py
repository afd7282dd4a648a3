"""The seed of what a run does at random: the one that was asked for, or one for all of it."""

import random

import pytest

_DRAWN = pytest.StashKey[int]()


def seed_of(config: pytest.Config) -> int:
    """The same at every call, so that one number replays the run."""
    asked: int | None = config.getoption("--seed")
    if asked is not None:
        return asked
    return config.stash.setdefault(_DRAWN, random.SystemRandom().randrange(10**6))
