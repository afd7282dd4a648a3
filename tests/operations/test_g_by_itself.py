"""Test a lost slot with ``source.on_lost_changes: read_again``: no operator is needed."""

import pytest
import yaml

from cdc.operations.automatic import LINE
from cdc.state import operation_files as files
from tests.e2e.installation import Installation
from tests.operations.asked import swept

pytestmark = [pytest.mark.e2e, pytest.mark.deep]


def test_tables_that_lost_changes_are_read_again_by_themselves(shop: Installation) -> None:
    path = shop.folder / "wal2lake.yaml"
    written = yaml.safe_load(path.read_text())
    path.write_text(
        yaml.safe_dump(written | {"source": written["source"] | {"on_lost_changes": "read_again"}})
    )
    shop.run("sync")
    shop.run("down")
    shop.execute("SELECT pg_drop_replication_slot('wal2lake')")
    shop.execute("DELETE FROM shop.orders WHERE id BETWEEN 110 AND 114")

    assert "the job reads every table again" in shop.run("up", "--detach")
    for operation in files.unfinished(shop.state_dir):
        shop.run("operations", operation.id, "--follow")

    shop.run("sync")
    assert shop.facts("verify")["equal"]
    assert swept(shop, f"WHERE line = '{LINE}'") == {"shop.orders": 5}
    path.write_text(yaml.safe_dump(written))
