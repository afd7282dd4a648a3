"""What several modules of unit tests start with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.desk_room import Room


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    made = Room(tmp_path)
    yield made
    for desk in made.desks:
        desk.stop(60)
