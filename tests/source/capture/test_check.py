"""Test the output and exit code of ``wal2lake check`` against a real Postgres."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from cdc.capture.bootstrap import refuse_unfit
from cdc.cli.check import check
from cdc.cli.up import up
from cdc.errors import CdcError, ErrorKind
from cdc.source.server.connection import connect, password
from cdc.stack.embedded import EmbeddedStack
from cdc.stack.servers import postgres
from cdc.stack.supervise import detached
from tests.servers.process import servers as processes
from tests.source.conftest import Maker

pytestmark = pytest.mark.integration

Sql = Callable[[str], object]


def run(tmp_path: Path, url: str, tables: str, *arguments: str) -> tuple[int, str]:
    file = tmp_path / "wal2lake.yaml"
    file.write_text(f"source:\n  url: {url}\n  tables: [{tables}]\nlake:\n  path: lake\n")
    app = typer.Typer()
    app.command()(check)
    result = CliRunner().invoke(app, ["--config", str(file), *arguments])
    assert password(url) not in result.output
    return result.exit_code, result.output


def findings(output: str) -> dict[str, dict[str, Any]]:
    return {finding["subject"]: finding for finding in json.loads(output)}


def test_a_fit_table_passes(source_url: str, sql: Sql, tmp_path: Path) -> None:
    sql("CREATE TABLE t (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED)")
    code, output = run(tmp_path, source_url, "a_fit_table_passes.*", "--json")
    assert code == 0
    by_subject = findings(output)
    assert by_subject["a_fit_table_passes.t"]["message"] == "key id; 1 of 2 columns arrive"
    assert by_subject["a_fit_table_passes.t.twice"]["level"] == "warning"
    assert "slot wal2lake" in by_subject
    code, output = run(tmp_path, source_url, "a_fit_table_passes.*")
    assert code == 0
    assert "0 errors" in output


def test_a_refused_table_is_not_called_fit(source_url: str, sql: Sql, tmp_path: Path) -> None:
    sql("CREATE TABLE good (id int PRIMARY KEY); CREATE TABLE bad (id int)")

    code, output = run(tmp_path, source_url, "a_refused_table_is_not_called_fit.*", "--json")

    prefix = "a_refused_table_is_not_called_fit."
    levels = {(f["subject"], f["level"]) for f in json.loads(output)}
    assert code == 5
    assert {level for subject, level in levels if subject == f"{prefix}bad"} == {"error"}
    assert {level for subject, level in levels if subject == f"{prefix}good"} == {"ok"}


def test_many_tables_are_summarized(source_url: str, sql: Sql, tmp_path: Path) -> None:
    for number in range(20):
        sql(f"CREATE TABLE t{number} (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id) STORED)")
    pattern = "many_tables_are_summarized.*"

    _, short = run(tmp_path, source_url, pattern)
    _, whole = run(tmp_path, source_url, pattern, "--verbose")

    assert "t19" not in short.replace("\n", "")
    assert "and 17 more" in " ".join(short.split())
    assert whole.count("key id;") == 20


@pytest.mark.parametrize("arguments", [(), ("--detach",)])
def test_up_starts_no_server_if_a_table_is_refused(
    source_url: str,
    sql: Sql,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
) -> None:
    sql("CREATE TABLE t (id int PRIMARY KEY)")

    def started(*_: object, **__: object) -> None:
        pytest.fail("a server was started")

    monkeypatch.setattr(EmbeddedStack, "start", started)
    monkeypatch.setattr(detached, "up", started)
    file = tmp_path / "wal2lake.yaml"
    file.write_text(f"source:\n  url: {source_url}\n  tables: [no.such]\nlake:\n  path: lake\n")
    app = typer.Typer()
    app.command()(up)
    result = CliRunner().invoke(app, ["--config", str(file), *arguments])

    assert isinstance(result.exception, CdcError)
    assert result.exception.kind is ErrorKind.SOURCE_NOT_READY
    assert result.exception.message.startswith(
        "no.such: this pattern in source.tables matches no table"
    )


def test_check_changes_nothing(source_url: str, sql: Sql, tmp_path: Path) -> None:
    sql("CREATE TABLE t (id int PRIMARY KEY)")
    counts = (
        "SELECT (SELECT count(*) FROM pg_publication), (SELECT count(*) FROM pg_replication_slots),"
        " (SELECT count(*) FROM pg_class)"
    )
    with connect(source_url) as connection:
        before = connection.execute(counts.encode()).fetchone()
        run(tmp_path, source_url, "check_changes_nothing.*")
        assert connection.execute(counts.encode()).fetchone() == before


def test_all_errors_are_listed(source_url: str, sql: Sql, tmp_path: Path) -> None:
    sql("CREATE TABLE a (x int); CREATE TABLE b (x int); CREATE VIEW c AS SELECT 1")
    code, output = run(
        tmp_path, source_url, "all_errors_are_listed.*, all_errors_are_listed.c, no.such", "--json"
    )
    assert code == 5
    wrong = {name for name, f in findings(output).items() if f["level"] == "error"}
    prefix = "all_errors_are_listed."
    assert wrong == {f"{prefix}a", f"{prefix}b", f"{prefix}c", "no.such"}
    assert all(f["remedy"] for name, f in findings(output).items() if name in wrong)


def test_a_stopped_source_is_an_error(tmp_path: Path) -> None:
    code, output = run(tmp_path, "postgresql://u:hidden@127.0.0.1:1/d", "s.t", "--json")
    assert code == 5
    assert findings(output)["unreachable"]["message"].startswith("no Postgres answers at")


def test_a_slot_in_use_is_an_error(source_url: str, sql: Sql, tmp_path: Path) -> None:
    sql("CREATE TABLE t (id int PRIMARY KEY)")
    reader = connect(source_url, replication="database", application_name="another")
    reader.execute("CREATE_REPLICATION_SLOT wal2lake TEMPORARY LOGICAL pgoutput")
    try:
        code, output = run(tmp_path, source_url, "a_slot_in_use_is_an_error.*", "--json")
    finally:
        reader.execute("DROP_REPLICATION_SLOT wal2lake")
        pid = reader.info.backend_pid
        reader.close()
    assert code == 5
    assert f"in use by pid {pid} (another)" in findings(output)["slot wal2lake"]["message"]


def test_a_wrong_wal_level_is_an_error(
    tmp_path: Path,
    make_config: Maker,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    monkeypatch.setitem(postgres._SETTINGS, "wal_level", "replica")
    server = processes(tmp_path_factory.mktemp("replica"))["postgres"]()
    try:
        _wrong_wal_level(server.start(), tmp_path, make_config)
    finally:
        server.stop()


def _wrong_wal_level(url: str, tmp_path: Path, make_config: Maker) -> None:
    with connect(url) as connection:
        connection.execute("CREATE TABLE public.t (id int PRIMARY KEY)")
    code, output = run(tmp_path, url, "public.*", "--json")
    assert code == 5
    assert findings(output)["wal_level"]["message"] == "is replica, but must be logical"
    with connect(url) as connection, pytest.raises(CdcError) as caught:
        refuse_unfit(connection, make_config())
    assert caught.value.kind is ErrorKind.SOURCE_NOT_READY
    assert "ALTER SYSTEM SET wal_level = logical" in caught.value.remedy
