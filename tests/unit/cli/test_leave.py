"""A process ends with its exit code although a library of it still waits for a store."""

import subprocess
import sys

from tests.objects.server import KEY_ID, SECRET
from tests.servers.container import free_port

SCRIPT = """
import threading
from contextlib import suppress
from deltalake import DeltaTable
from cdc.__main__ import leave

def ask():
    while True:
        with suppress(Exception):
            DeltaTable("s3a://lake/x/t")

threads = [threading.Thread(target=ask, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
threads[0].join(1)
print("error: said last")
leave(4)
"""


def test_threads_in_a_library_do_not_crash_it() -> None:
    """Python's own end may segfault once such a thread wants to return to it."""
    environ = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environ, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (4, "error: said last\n"), done.stderr
