"""The slot is lost, and nobody is asked: ``source.on_lost_changes`` says ``read_again``."""

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, QueryBuilder

from cdc.operate import operation_files as files
from cdc.operate.by_itself import LINE
from tests.e2e.installation import Installation

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
    shop.execute("DELETE FROM shop.orders WHERE id BETWEEN 20 AND 24")

    assert "the job reads every table again" in shop.run("up", "--detach")
    for operation in files.asked(shop.state_dir):
        shop.run("operations", operation.id, "--follow")

    shop.run("sync")
    assert shop.facts("verify")["equal"]
    assert swept(shop) == {"shop.orders": 5}
    path.write_text(yaml.safe_dump(written))


def swept(installation: Installation) -> dict[str, int]:
    """By table, where there were some, in what the job did by itself; read by delta-rs."""
    table = DeltaTable(str(installation.folder / "lake" / "_wal2lake" / "operations"))
    found = QueryBuilder().register("t", table).execute("SELECT line, results FROM t").read_all()
    rows = [row for row in pa.table(found).to_pylist() if row["line"] == LINE]
    return {r["table"]: r["swept"] for row in rows for r in row["results"] if r["swept"]}
