"""Kills at a failpoint, in the test's own process."""

import os
from pathlib import Path

import pytest

from cdc.failpoints import VARIABLE


class Killed(BaseException):
    """Stands for the kill; not an Exception, so that no handler catches it."""


def arm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a new directory of failpoints below ``folder``, whose kill raises ``Killed``."""

    def kill(_pid: int, _signal: int) -> None:
        raise Killed

    points = folder / "armed"
    points.mkdir()
    monkeypatch.setenv(VARIABLE, str(points))
    monkeypatch.setattr(os, "kill", kill)
    return points
