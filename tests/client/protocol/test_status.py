"""``status`` runs against a real source and a stand-in for the job."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdc.cli import app
from cdc.config import Config
from cdc.source.server import barrier
from cdc.source.server.connection import Connection
from tests.client.protocol.stand_in import (
    CONFIG,
    begin_epoch_of_a_restored_source,
    publish,
    write,
)

pytestmark = pytest.mark.integration


def test_status_shows_no_lag_in_bytes_after_a_cut_of_another_epoch(
    config: Config, source: Connection, path: Path
) -> None:
    write(config, 1)
    begin_epoch_of_a_restored_source(config, source)

    facts = json.loads(CliRunner().invoke(app, ["status", "-c", str(path), "--json"]).stdout)

    assert facts["tables"][0]["lag_bytes"] is None


def test_status_shows_what_it_can_and_names_what_it_cannot_reach(
    config: Config, source: Connection, path: Path
) -> None:
    write(config, 1)
    lsn = barrier.current_lsn(source)
    publish(config, lsn=lsn, state="stopped", reason="its key changed")
    source.execute("SELECT pg_create_logical_replication_slot('wal2lake', 'pgoutput', true)")
    source.execute("INSERT INTO shop.t SELECT generate_series(100, 1000)")

    facts = json.loads(CliRunner().invoke(app, ["status", "-c", str(path), "--json"]).stdout)
    shown = CliRunner().invoke(app, ["status", "-c", str(path)]).stdout

    (table,) = facts["tables"]
    assert (table["state"], table["offset"], table["lag_offsets"]) == ("stopped", 1, None)
    assert table["lag_bytes"] >= 901 * 8
    assert table["lag_seconds"] > 0  # Kafka is silent, so it is not known whether changes wait
    assert facts["source"]["retained_bytes"] > 0
    assert facts["source"]["wal_status"] == "reserved"
    assert facts["job"] == {"state": "unknown", "pid": None, "alive": False, "alarm": ""}
    assert any("Kafka" in text for text in facts["unreachable"])
    assert any("Connect" in text for text in facts["unreachable"])
    assert "its key changed" in shown
    assert "job: not running" in shown


def test_status_without_a_source_and_before_anything_ran(tmp_path: Path) -> None:
    made = tmp_path / "wal2lake.yaml"
    made.write_text(CONFIG.format(url="postgresql://u@127.0.0.1:1/d"))

    result = CliRunner().invoke(app, ["status", "-c", str(made)])

    assert result.exit_code == 0
    assert "nothing is published yet" in result.stdout
    assert "no Postgres answers at 127.0.0.1:1" in result.stdout
