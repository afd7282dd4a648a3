"""The profile s3: the lake is in the stack's own object store, which is lost and comes again."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import obstore
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from obstore.exceptions import GenericError
from obstore.store import S3Store

from tests.containers.stack import CONFIG, ROOT, Stack, stack_for, until_healthy
from tests.containers.writer import TABLES, fill, newest_of, write
from tests.meanwhile import meanwhile
from tests.objects.server import KEY_ID, SECRET
from tests.waiting import until
from tools import go_programs
from tools.dot_env import read
from tools.images import engine
from tools.images.stand_ins import has

pytestmark = [pytest.mark.stack, pytest.mark.timeout(2400)]

IMAGE: Final = "versity/versitygw:v1.8.0"
KEYS: Final = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}
ENVIRON: Final = {**read(ROOT / "deploy" / "s3.env"), **KEYS}
BUCKET, PREFIX = "lake", "tables"
ROWS: Final = 50_000
GONE: Final = "the object store of the lake does not do what is asked"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Yield a stack with the profile, and two tables in its store."""
    if engine.answers() and not has(IMAGE):
        pytest.skip(f"{IMAGE} is not here: {go_programs.why_none() or 'run make test-stack'}")
    folder = tmp_path_factory.mktemp("store")
    with stack_for("wal2lake-store", folder, environ=ENVIRON) as found:
        found.up("--build")
        found.execute(*TABLES, fill(ROWS))
        found.assert_equal()
        yield found


def options(stack: Stack) -> dict[str, str]:
    """Return how a reader on this machine reaches the store."""
    return ENVIRON | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{stack.ports['store']}"}


def orders(stack: Stack) -> int:
    """Count the orders as a reader finds them that knows nothing of wal2lake."""
    place = f"s3://{BUCKET}/{PREFIX}/public/orders"
    opened = DeltaTable(place, storage_options=options(stack))
    count = QueryBuilder().register("t", opened).execute("SELECT count(*) AS n FROM t")
    return int(pa.table(count.read_all())["n"][0].as_py())


def test_the_lake_is_in_the_store_and_nowhere_else(stack: Stack) -> None:
    assert orders(stack) == ROWS
    assert stack.shell("job", "find /lake -type f") == ""


def test_small_changes_are_committed_to_it_and_large_ones(stack: Stack) -> None:
    stack.execute("UPDATE orders SET cents = cents + 1 WHERE id <= 20000")
    stack.assert_equal()
    stack.execute("DELETE FROM orders WHERE id <= 10")
    stack.assert_equal()

    assert orders(stack) == ROWS - 10


def test_the_job_is_killed_under_load_and_up_again(stack: Stack) -> None:
    with meanwhile(lambda: write(stack), every=0.1):
        stack.compose("kill", "job")
        before = newest_of(stack)
        until(lambda: newest_of(stack) > before)
        stack.up()
    stack.assert_equal()


def test_the_store_is_gone_for_a_while_under_load(stack: Stack) -> None:
    """The job says what it lacks, writes nothing, and goes on when the store is there again."""
    told = stack.compose("logs", "job").count(GONE)
    with meanwhile(lambda: write(stack), every=0.1):
        stack.compose("kill", "store")
        until(lambda: stack.compose("logs", "job").count(GONE) > told, 300)
        stack.compose("start", "store")
        until_healthy(stack, "store")
        until_healthy(stack, "job")
        before = newest_of(stack)
        until(lambda: newest_of(stack) > before)
    stack.assert_equal()

    states = {table["state"] for table in stack.facts("status")["tables"]}
    assert states == {"streaming"}


def test_a_second_job_is_refused(stack: Stack) -> None:
    """It has a state directory of its own, as on another machine."""
    elsewhere = ("run", "--rm", "--env", "WAL2LAKE_STATE_DIR=/tmp/state")
    done = stack.run(*elsewhere, "job", "run", *CONFIG)

    assert done.returncode == 6
    assert "another job is writing to the lake s3a://lake/tables" in done.stderr


def test_a_stranger_may_not_read_the_store(stack: Stack) -> None:
    url = options(stack)["AWS_ENDPOINT_URL"]
    wrong = S3Store(
        BUCKET,
        endpoint=url,
        access_key_id=KEY_ID,
        secret_access_key=SECRET[::-1],
        client_options={"allow_http": True},
    )

    assert httpx.get(f"{url}/{BUCKET}?list-type=2").status_code == httpx.codes.FORBIDDEN
    with pytest.raises(GenericError, match="SignatureDoesNotMatch"):
        obstore.list(wrong, PREFIX).collect()


def test_no_key_of_the_store_is_in_a_log_a_file_or_an_object(stack: Stack, tmp_path: Path) -> None:
    places = {
        "job": ("/state", "/lake", "/etc/wal2lake"),
        "store": ("/buckets",),
        "kafka": ("/var/lib/kafka/data",),
    }
    for service, folders in places.items():
        for number, folder in enumerate(folders):
            stack.compose("cp", f"{service}:{folder}", str(tmp_path / f"{service}-{number}"))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    logs = stack.compose("logs", "--no-color")
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)

    assert [path for path in files if _has_a_key(path.read_bytes())] == []
    assert not _has_a_key(logs.encode() + commands.stdout.encode())
    kinds = {path.suffix for path in files if "_delta_log" in path.parts}
    assert {".json"} <= kinds
    assert any(path.suffix == ".parquet" for path in files)
    assert any("logs" in path.parts for path in files)


def _has_a_key(content: bytes) -> bool:
    return any(key.encode() in content for key in KEYS.values())
