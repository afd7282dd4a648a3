"""``verify`` runs against a real source and a stand-in for the job."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdc.cli import app
from cdc.client import moment
from cdc.client.verify import verify
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.source.server import snapshot
from cdc.source.server.connection import Connection
from cdc.state.pipeline import resolve
from tests.client.protocol.stand_in import (
    asked,
    begin_epoch_of_a_restored_source,
    obedient_job,
    publish,
    write,
)
from tests.meanwhile import meanwhile

pytestmark = pytest.mark.integration


def test_verify_compares_at_its_snapshot_and_removes_its_request(
    config: Config, source: Connection
) -> None:
    write(config, 1)
    publish(config, lsn=1)

    def somebody_commits() -> None:
        source.execute("INSERT INTO shop.t VALUES (2)")

    with obedient_job(config, before=somebody_commits):
        report = verify.verify(resolve(config), timeout=30)

    assert report.equal
    assert report.cut == 2  # and not 3, which was published right after it
    assert [table.comparison.source_rows for table in report.tables] == [1]
    assert asked(config) == []


def test_verify_holds_the_job_before_it_takes_the_snapshot(
    config: Config, source: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    del source
    write(config, 1)
    seen: list[int | None] = []
    real = snapshot.exported_snapshot

    def spied(url: str, seconds: float) -> object:
        seen.extend(request.bound for request in asked(config))
        return real(url, seconds)

    monkeypatch.setattr(moment, "exported_snapshot", spied)
    with obedient_job(config):
        verify.verify(resolve(config), timeout=30)

    assert seen == [None]


def test_verify_reports_missing_and_extra_rows_and_exits_with_1(
    config: Config, source: Connection, path: Path
) -> None:
    source.execute("INSERT INTO shop.t VALUES (7)")
    write(config, 1, 3)

    with obedient_job(config):
        shown = CliRunner().invoke(app, ["verify", "-c", str(path)])
        told = CliRunner().invoke(app, ["verify", "-c", str(path), "--json"])

    assert (shown.exit_code, told.exit_code) == (1, 1)
    assert "shop.t: missing id=7" in shown.stdout
    assert "shop.t: extra id=3" in shown.stdout
    facts = json.loads(told.stdout)
    assert (facts["equal"], facts["tables"][0]["comparison"]["missing"]) == (False, 1)


def test_verify_refuses_a_cut_beyond_its_snapshot(config: Config, source: Connection) -> None:
    del source
    write(config, 1)

    def too_far() -> None:
        for request in asked(config):
            if request.bound is not None:
                publish(config, lsn=request.bound + 1, request=request.id)

    with meanwhile(too_far), pytest.raises(CdcError, match="for this snapshot, but is past it"):
        verify.verify(resolve(config), timeout=30)
    assert asked(config) == []


def test_verify_waits_for_a_cut_of_this_epoch_after_the_source_was_restored(
    config: Config, source: Connection
) -> None:
    write(config, 1)
    begin_epoch_of_a_restored_source(config, source)

    with obedient_job(config):
        report = verify.verify(resolve(config), timeout=60)

    assert report.equal
    assert report.cut == 2


def test_verify_reports_what_it_waits_for_and_removes_its_request(
    config: Config, source: Connection
) -> None:
    del source
    with pytest.raises(CdcError) as caught:
        verify.verify(resolve(config), timeout=1)

    assert caught.value.kind is ErrorKind.TIMEOUT
    assert "the job is not running" in caught.value.detail
    assert "nothing reads the replication slot" in caught.value.detail
    assert "no Connect worker answers" in caught.value.detail
    assert asked(config) == []
