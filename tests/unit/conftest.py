"""Fixtures that several modules of unit tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.desk_room import Room


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    new_room = Room(tmp_path)
    yield new_room
    for desk in new_room.desks:
        desk.stop(60)
