import json
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import SecretStr

from cdc.config import Config, Source
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.state.directory import StateDir
from cdc.state.endpoints import (
    REGISTRY_PASSWORD,
    Endpoints,
    combine,
    configured_source_url,
    password_reference,
    properties_value,
    write_connector_secrets,
)
from cdc.state.pipeline import Pipeline, record, resolve

EMBEDDED = {"source_url": "postgresql://e", "kafka": "k:1", "connect": "http://c", "registry": "r"}


def test_nothing_recorded_says_that_the_stack_is_not_up(config: Config) -> None:
    with pytest.raises(CdcError) as caught:
        resolve(config)
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert caught.value.remedy == "wal2lake up"


def test_the_recorded_endpoints_are_found_and_private(config: Config, state: StateDir) -> None:
    endpoints = combine(config, EMBEDDED)
    record(state, Pipeline(config, endpoints))
    assert resolve(config) == Pipeline(config, endpoints)
    assert stat.S_IMODE(state.endpoints_file.stat().st_mode) == 0o600


def test_a_configured_address_wins(config: Config) -> None:
    changed = Config.model_validate(
        {**config.model_dump(), "registry": {"url": "http://other:8080/"}}
    )
    combined = combine(changed, EMBEDDED)
    assert combined.registry == "http://other:8080"
    assert combined.kafka == Broker("k:1")


def test_all_configured_needs_no_record(config: Config) -> None:
    urls = {
        "kafka": {"bootstrap_servers": "k:9092"},
        "connect": {"url": "http://c"},
        "registry": {"url": "http://r"},
        "source": {"tables": ["a.b"], "url": "postgresql://u@h/d"},
    }
    resolved = resolve(Config.model_validate({**config.model_dump(), **urls}))
    assert resolved.endpoints.source_url == "postgresql://u@h/d"


@given(st.text(st.characters(blacklist_categories=["Cs"]), min_size=1))
def test_the_password_is_complete_in_the_url_and_is_not_shown(password: str) -> None:
    source = Source(
        url="postgresql://me@db:5433/shop", password=SecretStr(password), tables=["a.b"]
    )
    url = configured_source_url(source)
    assert url is not None
    parts = urlsplit(url)
    assert unquote(parts.password or "") == password
    assert (parts.username, parts.hostname, parts.port) == ("me", "db", 5433)
    endpoints = Endpoints(
        source_url=url, kafka=Broker("k:1"), connect="http://c", registry="http://r"
    )
    assert url not in repr(endpoints)


def test_a_password_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    source = Source(url="postgresql://db/shop", password_file=tmp_path / "absent", tables=["a.b"])
    with pytest.raises(CdcError) as caught:
        configured_source_url(source)
    assert caught.value.kind is ErrorKind.CONFIG
    assert "absent" in caught.value.message


def java_properties_value(line: str) -> str:
    """Return the value of ``key=value`` by the rules of java.util.Properties."""
    raw, units, i = line.partition("=")[2].lstrip(" \t\f"), [], 0
    while i < len(raw):
        if raw[i] != "\\":
            units.append(ord(raw[i]))
            i += 1
        elif raw[i + 1] == "u":
            units.append(int(raw[i + 2 : i + 6], 16))
            i += 6
        else:
            units.append(ord({"n": "\n", "r": "\r", "t": "\t"}.get(raw[i + 1], raw[i + 1])))
            i += 2
    return b"".join(unit.to_bytes(2) for unit in units).decode("utf-16-be")


@example(" a")
@example("\t")
@example("\f a")
@given(st.text(st.characters(blacklist_categories=["Cs"])))
def test_any_value_can_be_read_back_from_a_properties_file(value: str) -> None:
    line = f"key={properties_value(value)}"
    assert line.isascii()
    assert "\n" not in line
    assert java_properties_value(line) == value


def test_the_connector_gets_the_password_by_reference(config: Config, state: StateDir) -> None:
    write_connector_secrets(state, "postgresql://u:p%40ss@h/d", "https://r:s3crt@h")
    reference = password_reference(config.state_dir)
    path = Path(reference.removeprefix("${file:").removesuffix(":password}"))
    assert path.read_text() == "password=p@ss\nregistry_password=s3crt\n"
    other = password_reference(config.state_dir, REGISTRY_PASSWORD)
    assert other == reference.replace(":password}", ":registry_password}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_record_is_json(config: Config, state: StateDir) -> None:
    record(state, Pipeline(config, combine(config, EMBEDDED)))
    assert json.loads(state.endpoints_file.read_text())["kafka"] == "k:1"


def test_the_record_has_no_secret_of_a_server_of_one_s_own(config: Config, state: StateDir) -> None:
    own = {
        "source": {"tables": ["a.b"], "url": "postgresql://u:hunter2@h/d?sslpassword=hunter2"},
        "connect": {
            "url": "https://c",
            "user": "u",
            "password": "hunter2",
            "registry_password": "${env:R}",
        },
        "registry": {"url": "https://r", "user": "u", "password": "hunter2"},
        "kafka": {"bootstrap_servers": "k:1", "user": "u", "password": "hunter2"},
    }
    configured = Config.model_validate({**config.model_dump(), **own})
    record(state, Pipeline(configured, combine(configured, {})))

    assert "hunter2" not in state.endpoints_file.read_text()
    assert resolve(configured).endpoints == combine(configured, {})
    assert "hunter2" in resolve(configured).endpoints.registry
