"""A process ends with its exit code although a library of it still waits for a store."""

import subprocess
import sys

from tests.objects.server import KEY_ID, SECRET

PATIENCE = 20  # seconds; the library waits for minutes
SCRIPT = """
import os, socket, threading
from deltalake import DeltaTable
from cdc.__main__ import leave

silent = socket.create_server(("127.0.0.1", 0))
os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}"

def ask():
    DeltaTable("s3a://lake/x/t")

for _ in range(3):
    threading.Thread(target=ask).start()
connections = [silent.accept() for _ in range(3)]  # each thread is in the library then
print("error: said last")
leave(4)
"""


def test_it_waits_for_no_thread() -> None:
    """By itself Python waits for such threads, or crashes when a daemon returns to it."""
    environ = {
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )

    assert (done.returncode, done.stdout) == (4, "error: said last\n"), done.stderr
