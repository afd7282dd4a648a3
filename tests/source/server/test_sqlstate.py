"""A refusal is judged by its SQLSTATE, whatever the language of its message."""

import socket
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.errors import POLICY, CdcError, ErrorKind
from cdc.source.server.connection import connect
from cdc.source.server.connection_refusal import _LATER, _OURS
from tests.source.refusing import refusing

SEVERITIES = ("FATAL", "SCHWERWIEGEND", "ВАЖНО", "致命错误")
WORDS = (
    *_LATER,
    *(words for words, _, _ in _OURS),
    "failed to resolve host",
    "57P03",
    '" C "28P01',
)
TEMPORARY = ("57P03", "57P01", "57P02", "57P05", "53300", "53200", "08006")
LASTING = ("28P01", "28000", "3D000", "42501", "57P04", "55000", "0A000", "XX000", "F0000")
MESSAGES = st.one_of(
    st.sampled_from(WORDS),
    st.builds("base de données « {} » inexistante".format, st.sampled_from(WORDS)),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40),
)


def refusal(url: str) -> CdcError:
    with pytest.raises(CdcError) as caught:
        connect(url)
    return caught.value


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(TEMPORARY), st.sampled_from(SEVERITIES), MESSAGES)
def test_a_temporary_sqlstate_is_unreachable(state: str, severity: str, message: str) -> None:
    with refusing(state, severity, message) as url:
        error = refusal(url)
    assert error.kind is ErrorKind.UNREACHABLE
    assert "accepts no connections at the moment" in error.message


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(LASTING), st.sampled_from(SEVERITIES), MESSAGES)
def test_a_lasting_sqlstate_is_a_source_that_is_not_ready(
    state: str, severity: str, message: str
) -> None:
    with refusing(state, severity, message) as url:
        error = refusal(url)
    assert error.kind is ErrorKind.SOURCE_NOT_READY
    assert error.message.startswith("the source refuses the connection as u@127.0.0.1:")


def test_a_message_in_any_language_is_shown() -> None:
    with refusing("3D000", "ВАЖНО", "базы данных нет") as url:
        assert refusal(url).detail == "базы данных нет"


@pytest.mark.integration
@pytest.mark.parametrize("name", ["too many", "starting up", "no password supplied", "SSL error"])
def test_a_database_s_name_does_not_change_the_error(source_url: str, name: str) -> None:
    error = refusal(psycopg.conninfo.make_conninfo(source_url, dbname=name))
    assert error.kind is ErrorKind.SOURCE_NOT_READY
    assert error.detail == f'database "{name}" does not exist'


@pytest.mark.parametrize("code", [socket.EAI_NONAME, socket.EAI_AGAIN])
def test_a_host_name_that_cannot_be_resolved_is_named(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """It may be a typo or a name server that is down: a job waits, a first start reports it."""

    def unknown(*_given: object, **_named: object) -> None:
        raise socket.gaierror(code, "nobody knows it")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    error = refusal("postgresql://u:secret@db.exampel:5432/d")
    assert error.kind is ErrorKind.UNREACHABLE
    assert error.message == "the host name db.exampel cannot be resolved"
    assert "nobody knows it" in error.detail
    assert "correct the host in source.url" in error.remedy
    assert "secret" not in str(error)


@pytest.mark.integration
def test_the_server_accepts_a_second_attempt(source_url: str) -> None:
    from cdc.source.server.sqlstate import TAKEN, connection_sqlstates  # noqa: PLC0415

    assert connection_sqlstates(source_url, 10) == {TAKEN}


def test_a_first_start_fails_at_once_for_an_unknown_host(tmp_path: Path) -> None:
    """No server is started."""
    url = "postgresql://u@no-such-host.invalid/d"
    config = tmp_path / "wal2lake.yaml"
    config.write_text(f"source: {{url: '{url}', tables: [a.*]}}\nlake: {{path: {tmp_path}/lake}}\n")
    command = [sys.executable, "-m", "cdc", "up", "--detach", "-c", str(config)]
    up = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert up.returncode == POLICY[ErrorKind.UNREACHABLE].exit_code
    assert "the host name no-such-host.invalid cannot be resolved" in up.stderr
    assert "correct the host in source.url" in up.stderr
    assert [path.name for path in tmp_path.rglob("endpoints.json")] == []
