"""Rules of the servers, the clients and what is observed, to remove one at a time."""

from typing import Final

from tests.mutants.mutant import Mutant

PURE: Final = ("tests/unit", "tests/property")

SERVED: Final = (
    Mutant(
        name="no run begins before the previous run's operation has ended",
        file="cdc/job/handlers.py",
        old="        if self._desk.stop(seconds):\n",
        new="        if self._desk.stop(seconds) or True:\n",
        tests=PURE,
    ),
    Mutant(
        name="a connector that is reported running but has no worker is restarted",
        file="cdc/stack/supervise/connector_watch.py",
        old="return self.absence.is_too_long(now)",
        new="return False",
        tests=("tests/stack/test_watch.py",),
    ),
    Mutant(
        name="a hop without progress stands still",
        file="cdc/observe/hop_motion.py",
        old="    if waited < LIMIT_SECONDS:\n",
        new="    if True:\n",
        tests=("tests/unit/observe/test_hop_motion.py",),
    ),
    Mutant(
        name="a counter that cannot be seen has not moved",
        file="cdc/observe/hop_motion.py",
        old="return after is not None and after != before",
        new="return after != before",
        tests=("tests/unit/observe/test_hop_motion.py",),
    ),
    Mutant(
        name="a barrier must come from the source that the lake follows",
        file="cdc/client/sync.py",
        old="refuse_other(recorded_origin(landed, epoch), origin(connection), 0)",
        new="pass",
        tests=("tests/client/protocol/test_sync.py",),
    ),
    Mutant(
        name="the embedded worker asks for credentials",
        file="cdc/stack/servers/connect.py",
        old='    "rest.extension.classes": f"{_EXTENSION}.BasicAuthSecurityRestExtension",\n',
        new="",
        tests=("tests/servers/test_worker_access.py",),
    ),
    Mutant(
        name="a connector's configuration can read only its own secret",
        file="cdc/stack/servers/connect.py",
        old="str(self._for_connector),",
        new="str(self.state.secrets),",
        tests=("tests/servers/test_worker_access.py",),
    ),
    Mutant(
        name="requests to this machine bypass every proxy",
        file="cdc/http_client.py",
        old="trust_env=not local",
        new="trust_env=True",
        tests=("tests/unit/test_rest.py",),
    ),
    Mutant(
        name="an error is reported without values",
        file="cdc/observe/defects.py",
        old="    facts = [fact for fact in _facts(error) if fact]\n",
        new="    facts = [str(error)]\n",
        tests=("tests/unit/observe/test_defects.py",),
    ),
    Mutant(
        name="Spark's messages about rows are not written",
        file="cdc/observe/java_log.py",
        old='"rootLogger.appenderRef.a.ref = quiet"',
        new='"rootLogger.appenderRef.a.ref = speaking"',
        tests=("tests/spark/lake/test_session_log.py",),
    ),
    Mutant(
        name="a log is bounded while it is written",
        file="cdc/stack/supervise/watch.py",
        old="        rotate_all(self._stack.state)\n",
        new="",
        tests=("tests/stack/test_log_files.py",),
    ),
    Mutant(
        name="a bucket that is too large is split",
        file="cdc/client/verify/compare.py",
        old="if part.bytes > self.most_bytes and divisor < HASHES:",
        new="if part.bytes < 0:",
        tests=PURE,
    ),
)
