"""The job gives the system back what its threads have freed."""

import subprocess
import sys
import textwrap

import pytest

GLIBC = sys.platform == "linux"


@pytest.mark.skipif(not GLIBC, reason="other C libraries decide that by themselves")
def test_freed_memory_is_given_back() -> None:
    """One object that is still used, above 200 MB that are not, must not keep them."""
    program = """
        import psutil
        from cdc.job import free_memory
        from cdc.waiting import until

        resident = lambda: psutil.Process().memory_info().rss
        before = resident()
        blocks = [bytes(2_000) for _ in range(100_000)]
        used = bytes(2_000)
        del blocks
        kept = resident() - before
        with free_memory.giving_back():
            until(lambda: resident() - before < 20e6, 20, "memory was not given back")
        print(kept > 150e6)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.stdout.split(), ran.stderr) == (["True"], "")
