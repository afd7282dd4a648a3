"""Test recovery from a lost slot: rows deleted meanwhile disappear from the lake.

The commands are those of docs/operations.md, with the output that it shows.
"""

from pathlib import Path

import pytest

from tests.e2e.installation import Installation
from tests.operations import walk
from tests.operations.asked import swept

pytestmark = [pytest.mark.e2e, pytest.mark.deep]
DOCUMENT = Path(__file__).parents[2] / "docs" / "operations.md"


def test_the_documented_recovery_from_a_lost_slot_works(shop: Installation) -> None:
    shop.run("sync")
    transcript = []
    for step in walk.steps(DOCUMENT, "A walk through it"):
        printed = walk.run(shop, step)
        transcript.append(f"$ {step.command}\n{printed}")
        assert not walk.missing(step, printed), "".join(transcript)
    print("".join(transcript))  # noqa: T201 - to compare with the document

    assert len(transcript) > 10
    assert swept(shop, "ORDER BY id DESC LIMIT 1") == {"shop.orders": 11, "shop.prices": 20}
    shop.run("down")
    shop.run("up", "--detach")
    shop.execute("DELETE FROM shop.orders WHERE id = 200")
    shop.run("sync")
    assert shop.facts("verify")["equal"]
