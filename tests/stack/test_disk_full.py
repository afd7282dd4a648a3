"""A full state directory is refused at the start and survived while running."""

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind
from cdc.stack import embedded
from cdc.stack.artifacts import prerequisites
from cdc.stack.process.process import ProcessIdentity
from cdc.stack.process.stack_report import StackReport, read
from cdc.stack.servers import kafka
from cdc.state.directory import StateDir
from cdc.state.pipeline import resolve
from tests.small_disk import fill, small_disk
from tests.stack.conftest import ours, supervised
from tests.waiting import until


@pytest.mark.usefixtures("any_java")
def test_too_little_space_is_reported_before_anything_starts(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=2**20))
    with pytest.raises(CdcError) as caught, embedded.running(config):
        pytest.fail("must not start")
    assert caught.value.kind is ErrorKind.DISK_FULL
    assert str(config.state_dir) in caught.value.message
    assert "state_dir" in caught.value.remedy


def test_the_system_s_disk_error_becomes_disk_full(tmp_path: Path) -> None:
    def fail(code: int) -> None:
        with prerequisites.disk_full_named(tmp_path):
            raise OSError(code, os.strerror(code))

    with pytest.raises(CdcError) as caught:
        fail(errno.ENOSPC)
    assert caught.value.kind is ErrorKind.DISK_FULL
    with pytest.raises(PermissionError):
        fail(errno.EACCES)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    with small_disk(place, "800m"):
        yield place


def test_the_report_is_written_on_a_full_disk(disk: Path) -> None:
    state = StateDir(disk / "state")
    state.create()
    report = StackReport(state=state, supervisor=ProcessIdentity.of(os.getpid()))
    report.event("there was room")
    fill(disk / "ballast")
    with pytest.raises(OSError, match="No space left"):
        (disk / "more").write_bytes(b"x")
    for number in range(3):
        report.event(f"there is none: {number}")
        fill(disk / f"taken by others {number}")
    assert events(state)[-1] == "there is none: 2"


@pytest.mark.integration
def test_a_disk_that_fills_is_reported_and_the_servers_return_once_it_has_space(
    disk: Path, config_file: Path
) -> None:
    values = yaml.safe_load(config_file.read_text())
    config_file.write_text(yaml.safe_dump({**values, "state_dir": str(disk / "state")}))
    config = load(config_file, {})
    state = StateDir(config.state_dir)
    with supervised(config_file) as process:
        until(lambda: read(state).get("phase") == "ready")
        endpoints = resolve(config).endpoints
        fill(disk / "ballast")
        write_until_refused(endpoints.kafka.bootstrap)
        until(lambda: any("MiB free" in what for what in events(state)), 120)
        assert process.poll() is None

        (disk / "ballast").unlink()
        # On a disk that is nearly full a restart may succeed, and end again.
        until(lambda: is_back(events(state)) and kafka.is_answering(endpoints.kafka), 180)
        process.terminate()
        assert process.wait(90) == 0
    assert ours(state) == []


def is_back(happened: list[str]) -> bool:
    """Return whether the last that happened to Kafka is that it got ready again."""
    return [what for what in happened if what.startswith("kafka ")][-1] == "kafka is ready again"


def events(state: StateDir) -> list[str]:
    return [event["what"] for event in read(state)["events"]]


def write_until_refused(bootstrap: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap}, logger=kafka.silent_logger())
    client.create_topics([NewTopic("ballast", 1, 1)])
    producer = Producer({"bootstrap.servers": bootstrap}, logger=kafka.silent_logger())
    for _ in range(64):
        producer.produce("ballast", os.urandom(2**19))
        producer.poll(0)
    producer.flush(10)
    producer.purge()
    producer.flush(1)
