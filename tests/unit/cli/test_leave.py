"""A process ends with its exit code although a library of it still waits for a store."""

import subprocess
import sys

from tests.objects.server import KEY_ID, SECRET

SCRIPT = """
import os, socket, threading
from deltalake import DeltaTable
from cdc.__main__ import leave

silent = socket.create_server(("127.0.0.1", 0))
os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}"

def ask():
    DeltaTable("s3a://lake/x/t")

class Answer:
    def __del__(self):  # only if Python ends by itself
        for connection, _ in connections:
            connection.sendall(b"HTTP/1.1 403 Forbidden\\r\\nContent-Length: 0\\r\\n\\r\\n")
        for thread in threads:
            thread.join()

threads = [threading.Thread(target=ask, daemon=True) for _ in range(3)]
for thread in threads:
    thread.start()
connections = [silent.accept() for _ in threads]  # each thread is in the library then
answer = Answer()
print("error: said last")
leave(4)
"""


def test_threads_in_a_library_do_not_crash_it() -> None:
    """By itself Python segfaults when such a thread wants to return to it."""
    environ = {
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.returncode, done.stdout) == (4, "error: said last\n"), done.stderr
