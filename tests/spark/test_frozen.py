"""A job that is suspended for longer than Spark waits for an executor continues afterwards.

A laptop sleeps, a virtual machine is migrated, somebody sends SIGSTOP. With a local master,
executor and driver are one process, so neither can have lost the other.
"""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

import pytest

from tests.stopped import stopped

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

WAITS: Final = {
    "spark.network.timeout": "3s",
    "spark.network.timeoutInterval": "500ms",
    "spark.executor.heartbeatInterval": "200ms",
    "spark.executor.heartbeat.maxFailures": "30",
}
"""Spark's defaults are 120 s, 60 s, 10 s and 60."""
FROZEN_SECONDS: Final = 9.0
"""Longer than each, and than the heartbeat's interval times its failures."""
TIMES: Final = 3
CHILD: Final = """
import json, sys
from pathlib import Path
from cdc.config import Config
from cdc.lake.session import build
from cdc.stack.artifacts.lock_file import spark_jars

folder, conf = Path(sys.argv[1]), json.loads(sys.argv[2])
config = Config.model_validate({
    "name": "frozen",
    "state_dir": folder,
    "source": {"url": "postgresql://nobody@127.0.0.1/none", "tables": ["none.*"]},
    "lake": {"path": str(folder / "lake")},
    "spark": {"master": "local[2]", "driver_memory": "512m", "conf": conf},
})
spark = build(config, spark_jars())
for line in sys.stdin:
    print("rows", spark.range(1000).repartition(2).count(), flush=True)
spark.stop()
"""


def next_line(child: subprocess.Popen[str]) -> str:
    """Have the child run a query and return the line it prints; empty if it has ended."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("\n")
    child.stdin.flush()
    return child.stdout.readline()


def test_spark_continues_after_it_was_suspended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(tmp_path), json.dumps(WAITS)]
    log = tmp_path / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as child,
    ):
        try:
            assert next_line(child) == "rows 1000\n", log.read_text()
            for _ in range(TIMES):
                # The length of the suspension is what is tested; there is nothing to await.
                with stopped(child.pid):
                    threading.Event().wait(FROZEN_SECONDS)
                assert next_line(child) == "rows 1000\n", log.read_text()
            child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == 0, log.read_text()
