"""The embedded worker's REST interface neither shows nor changes anything without a login."""

import json
import stat
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from cdc.state.endpoints import CONNECTOR_SECRETS
from tests.servers.fixtures import Makers
from tests.servers.process import ProcessServer

pytestmark = pytest.mark.integration

CONFIG: Final = {"connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector"}
UNAUTHORIZED: Final = httpx.codes.UNAUTHORIZED
DOORS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("GET", "/", None),
    ("GET", "/health", None),
    ("GET", "/connectors", None),
    ("GET", "/connectors?expand=info&expand=status", None),
    ("POST", "/connectors", {"name": "c", "config": CONFIG}),
    ("GET", "/connectors/c", None),
    ("DELETE", "/connectors/c", None),
    ("GET", "/connectors/c/config", None),
    ("PUT", "/connectors/c/config", CONFIG),
    ("PATCH", "/connectors/c/config", CONFIG),
    ("GET", "/connectors/c/status", None),
    ("GET", "/connectors/c/tasks", None),
    ("GET", "/connectors/c/tasks/0/status", None),
    ("POST", "/connectors/c/tasks/0/restart", None),
    ("POST", "/connectors/c/restart?includeTasks=true", None),
    ("PUT", "/connectors/c/pause", None),
    ("PUT", "/connectors/c/resume", None),
    ("PUT", "/connectors/c/stop", None),
    ("GET", "/connectors/c/topics", None),
    ("PUT", "/connectors/c/topics/reset", None),
    ("GET", "/connectors/c/offsets", None),
    ("PATCH", "/connectors/c/offsets", {"offsets": []}),
    ("DELETE", "/connectors/c/offsets", None),
    ("GET", "/connector-plugins", None),
    ("GET", "/connector-plugins/PostgresConnector/config", None),
    ("PUT", "/connector-plugins/PostgresConnector/config/validate", CONFIG),
    ("GET", "/admin/loggers", None),
    ("GET", "/admin/loggers/root", None),
    ("PUT", "/admin/loggers/root", {"level": "TRACE"}),
)
"""Every path in the worker's documentation; workers use two more, signed with their key."""
BETWEEN_WORKERS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("POST", "/connectors/c/tasks", [{}]),
    ("PUT", "/connectors/c/fence", {}),
)


def test_a_stranger_can_neither_read_nor_change_anything(servers: Makers, tmp_path: Path) -> None:
    kafka, connect = servers["kafka"](), servers["connect"]()
    if not isinstance(connect, ProcessServer):
        pytest.skip("a container's worker is the user's own")
    kafka.start()
    address = connect.start()

    open_ = _bare(address)
    wrong = httpx.BasicAuth("wal2lake", "guessed")
    answers = {door[:2]: _knock(open_, *door, auth=None) for door in DOORS}
    assert {door: code for door, code in answers.items() if code != UNAUTHORIZED} == {}
    guessed = {door[:2]: _knock(open_, *door, auth=wrong) for door in DOORS}
    assert {door: code for door, code in guessed.items() if code != UNAUTHORIZED} == {}
    for door in BETWEEN_WORKERS:
        assert _knock(open_, *door, auth=None) in range(400, 500)

    assert _get(address, "/connectors") == []
    assert _get(address, "/admin/loggers/root")["level"] == "WARN"
    _secrets_are_kept(tmp_path, connect, address)
    _no_other_secret_is_a_setting(address, tmp_path)


def _secrets_are_kept(root: Path, connect: ProcessServer, address: str) -> None:
    """Check that the password is in two private files only, and in no command line or log."""
    password = str(urlsplit(address).password)
    assert len(password) > 20
    for path in (root / "secrets").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert connect.process is not None
    process = psutil.Process(connect.process.pid)
    assert password not in " ".join(process.cmdline())
    assert password not in json.dumps(process.environ())
    files = [path for path in root.rglob("*") if path.is_file()]
    places = {str(path.relative_to(root)) for path in files if password in _text(path)}
    assert places == {"secrets/connect", "secrets/connect.credentials"}


def _no_other_secret_is_a_setting(address: str, root: Path) -> None:
    """Check that a client of the worker can make it read one file of the directory only."""
    (root / "secrets" / CONNECTOR_SECRETS).write_text("password=the_one_file")
    (root / "secrets" / "canary.properties").write_text("password=kept_apart")
    assert "the_one_file" in _refused_number(address, root / "secrets" / CONNECTOR_SECRETS)
    assert "kept_apart" not in _refused_number(address, root / "secrets" / "canary.properties")


def _refused_number(address: str, file: Path) -> str:
    """Return the worker's refusal of a number setting: it quotes the value of the file."""
    config = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "name": "c",
        "tasks.max": f"${{file:{file.resolve()}:password}}",
    }
    path = "/connector-plugins/PostgresConnector/config/validate"
    return httpx.put(f"{address}{path}", json=config, timeout=60).text


def _text(path: Path) -> str:
    return path.read_bytes().decode("latin-1")


def _bare(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.hostname}:{parts.port}"


def _knock(url: str, method: str, path: str, body: object, *, auth: httpx.Auth | None) -> int:
    answer = httpx.request(method, f"{url}{path}", json=body, auth=auth, timeout=60)
    return answer.status_code


def _get(address: str, path: str) -> Any:  # noqa: ANN401 - JSON
    return httpx.get(f"{address}{path}", timeout=60).raise_for_status().json()
