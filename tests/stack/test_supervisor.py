"""The real servers under a supervisor that is signalled, killed or hindered."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cdc.config import load
from cdc.stack.process.process import last_lines
from cdc.stack.process.stack_report import read
from cdc.stack.servers import connect, kafka, registry
from cdc.stack.supervise import detached
from cdc.state.directory import StateDir
from cdc.state.pipeline import resolve
from tests.stack.conftest import ours, supervised
from tests.waiting import until

pytestmark = pytest.mark.integration


def is_ready(state: StateDir, process: subprocess.Popen[bytes], config_file: Path) -> bool:
    output = last_lines(config_file.parent / "driver.log")
    assert process.poll() is None, output
    mine = read(state).get("supervisor", {}).get("pid") == process.pid
    return bool(mine and read(state)["phase"] == "ready")


def pid_of(state: StateDir, name: str) -> int:
    return int(json.loads((state.run / f"{name}.json").read_text())["pid"])


def test_a_signal_in_the_middle_of_the_start_stops_everything(
    config_file: Path, state: StateDir
) -> None:
    with supervised(config_file) as process:
        until((state.run / "kafka.json").exists)
        process.send_signal(signal.SIGTERM)
        # Not an orderly end: this is how Python ends if nobody catches the interrupt.
        assert process.wait(60) == -signal.SIGINT
        assert ours(state) == []


def test_killed_servers_are_restarted_and_a_killed_supervisor_s_are_cleaned_up(
    config_file: Path, state: StateDir
) -> None:
    config = load(config_file, {})
    with supervised(config_file) as first:
        until(lambda: is_ready(state, first, config_file))
        for name in ("kafka", "connect"):
            os.kill(pid_of(state, name), signal.SIGKILL)
        until(lambda: {"kafka is ready again", "connect is ready again"} <= events(state), 180)
        endpoints = resolve(config).endpoints
        assert kafka.is_answering(endpoints.kafka)
        assert connect.is_answering(endpoints.connect)
        assert registry.is_answering(endpoints.registry)
        assert read(state)["processes"]["kafka"]["restarts"] == 1

        left = pid_of(state, "kafka")
        first.kill()
        first.wait()
        assert len(ours(state)) >= 4

    with supervised(config_file) as second:  # the next up stops what was left
        until(lambda: is_ready(state, second, config_file))
        assert pid_of(state, "kafka") != left
        assert any("left by an earlier run" in what for what in events(state))
        assert any("supervisor.crash.log" in what for what in events(state))
        second.kill()
        second.wait()
    assert "java" in detached.down(config)  # and so does down
    assert ours(state) == []
    assert detached.down(config) == []


def events(state: StateDir) -> set[str]:
    return {event["what"] for event in read(state)["events"]}


def test_a_second_supervisor_is_refused_and_a_signal_stops_everything(
    config_file: Path, state: StateDir
) -> None:
    with supervised(config_file) as first:
        until(lambda: is_ready(state, first, config_file))
        before = state.stack_file.read_text()
        second = wal2lake("up", "--config", str(config_file))
        assert second.returncode == 6
        assert "already up" in second.stderr
        assert state.stack_file.read_text() == before
        assert len(ours(state)) >= 4
        first.send_signal(signal.SIGINT)
        assert first.wait(180) == 0
    assert ours(state) == []


def wal2lake(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cdc", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_a_port_in_use_is_reported_before_anything_starts(
    config_file: Path, state: StateDir
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        values = yaml.safe_load(config_file.read_text())
        config_file.write_text(yaml.safe_dump({**values, "stack": {"ports": {"registry": port}}}))
        result = wal2lake("up", "--detach", "--config", str(config_file))
    assert result.returncode == 6
    assert f"error: port {port} of registry is already in use" in result.stderr
    assert "remedy: stop that process" in result.stderr
    assert not state.log("kafka").exists()
    assert ours(state) == []


def test_a_server_that_fails_to_start_is_reported_with_its_log(
    config_file: Path, state: StateDir
) -> None:
    broken = state.data("kafka") / "log" / "meta.properties"
    broken.parent.mkdir(parents=True)
    broken.write_text("version=1\ncluster.id=nonsense\nnode.id=99\n")
    result = wal2lake("up", "--detach", "--config", str(config_file))
    assert result.returncode == 11
    assert "kafka failed to start" in result.stderr
    assert "node" in result.stderr
    assert str(state.log("kafka")) in result.stderr
    assert ours(state) == []
