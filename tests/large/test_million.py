"""A large table is read again under load, while processes are killed: minutes, with --deep."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from cdc.state import operation_files as files
from tests.e2e.installation import Installation
from tests.large.terminal import on_terminal
from tests.meanwhile import meanwhile
from tests.operations.asked import last_line, last_object, result
from tests.operations.blind import unseen
from tests.operations.conftest import snapshotted
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.deep]
ROWS = 1_000_000
SQL = f"""
CREATE SCHEMA big;
CREATE TABLE big.rows (id int PRIMARY KEY, part int, note text, amount numeric(12,2));
CREATE TABLE big.busy (id int PRIMARY KEY, n bigint);
INSERT INTO big.rows SELECT i, i % 10, md5(i::text), i FROM generate_series(1, {ROWS}) i;
INSERT INTO big.busy SELECT i, 0 FROM generate_series(1, 1000) i;
"""


@pytest.fixture(scope="module")
def big(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """Yield an installation whose topics have all rows, for a replay from Kafka."""
    root = tmp_path_factory.mktemp("million")
    with snapshotted(
        request, root, sql=SQL, tables="big.*", seconds=900, conf={}, snapshot="connector"
    ) as found:
        yield found


@pytest.mark.parametrize("whence", ["log", "kafka"])
def test_a_million_rows_are_made_again(big: Installation, whence: str, tmp_path: Path) -> None:
    made_again(big, whence, tmp_path)


def test_a_million_rows_in_place_while_job_and_worker_are_killed(big: Installation) -> None:
    with unseen(big, "big.rows"):
        big.execute("DELETE FROM big.rows WHERE id % 1000 = 0")
        big.execute("UPDATE big.rows SET note = 'unseen' WHERE id % 1000 = 1")

    with changing(big):
        big.run("resnapshot", "big.rows", "--detach")
        await_phase(big, "reading", starts=1)
        big.crash("job")
        await_phase(big, "reading", starts=2)
        big.crash("connect")
        await_phase(big, "waiting for the barrier", starts=2)
        big.crash("job")  # between the table's commit and the record of what came of it
        ended = followed(big)

    rows = result(ended, "big.rows")
    assert (rows["swept"], rows["changed"]) == (1000, 1000)
    print("in place:", rows)  # noqa: T201 - figures for who runs it
    big.run("sync", "--timeout", "900")
    assert big.facts("verify")["equal"]


@pytest.mark.parametrize("server", ["kafka", "registry", "postgres"])
def test_any_server_is_killed_while_the_rows_are_read(big: Installation, server: str) -> None:
    """The operation goes on, or ends with a reason and can be asked for again."""
    big.execute("UPDATE big.rows SET note = 'before the crash' WHERE id % 1000 = 2")
    big.run("resnapshot", "big.rows", "--detach")
    await_phase(big, "reading", starts=1)
    (operation,) = files.unfinished(big.state_dir)

    big.crash(server)
    done = big.done("operations", operation.id, "--follow", "--json")
    ended = last_object(done.stdout)
    print(server, "killed:", ended["state"], ended["reason"])  # noqa: T201 - figures for who runs it

    if ended["state"] == "failed":
        assert done.returncode != 0
        assert ended["reason"]
        assert ended["remedy"]
        big.run("sync", "--timeout", "900")
        last_line(big, "resnapshot", "big.rows")
    big.run("sync", "--timeout", "900")
    assert big.facts("verify")["equal"]


def test_a_terminal_shows_how_far_a_reading_is(big: Installation) -> None:
    big.execute("ANALYZE big.rows")  # what the share is reckoned from

    code, drawn = on_terminal(big, "resnapshot", "big.rows")

    frames = re.findall(
        r"(\d+)% +\d+ chunks? +[\d,]+ of [\d,]+ rows +[\d,]+ rows/s +.* left", drawn
    )
    bars = [line for line in drawn.splitlines() if "rows/s" in line]
    print("resnapshot big.rows", *bars[:: max(1, len(bars) // 4)], sep="\n")  # noqa: T201 - to be seen
    assert code == 0, drawn
    assert "resnapshot big.rows: reading" in drawn
    shares = [int(share) for share in frames]
    assert len(set(shares)) > 1
    assert shares == sorted(shares)
    assert "resnapshot is done" in drawn


def test_a_tenth_of_a_million_by_a_predicate(big: Installation) -> None:
    with unseen(big, "big.rows"):
        big.execute("DELETE FROM big.rows WHERE id BETWEEN 11 AND 20")

    with changing(big):
        done = last_line(big, "resnapshot", "big.rows", "--where", "part = 3")

    rows = result(done, "big.rows")
    print("a tenth:", rows)  # noqa: T201 - figures for who runs it
    assert rows["swept"] == 1
    assert rows["rows_read"] == pytest.approx(ROWS / 10, rel=0.02)


def test_a_shadow_of_a_million_with_a_reader(big: Installation) -> None:
    seen: list[int] = []
    with changing(big), meanwhile(lambda: seen.append(big_rows(big)), every=0.2):
        done = last_line(big, "resnapshot", "big.rows", "--shadow")

    rows = result(done, "big.rows")
    print("shadow:", rows, "reader:", len(seen), "reads", sorted(set(seen)))  # noqa: T201 - figures for who runs it
    assert rows["swept"] == 9
    big.run("sync", "--timeout", "900")
    assert set(seen) <= {big_rows(big), big_rows(big) + 9}
    assert big.facts("verify")["equal"]


def test_after_all_readings_the_log_makes_it_again(big: Installation, tmp_path: Path) -> None:
    made_again(big, "log", tmp_path)


def made_again(installation: Installation, whence: str, folder: Path) -> None:
    """Equal to the live table, as the second reader of both tells; prints the figures."""
    path = str(folder / "made")
    found = last_line(installation, "replay", "big.rows", "--from", whence, "--into", path)
    print(f"from {whence}:", found)  # noqa: T201 - figures for who runs it
    assert found["equal"] is True, found
    live = str(installation.folder / "lake" / "big" / "rows")
    assert totals(path) == totals(live)


def totals(path: str) -> list[dict[str, Any]]:
    """Read by delta-rs."""
    query = "SELECT count(*) AS n, sum(id) AS ids, sum(amount) AS amounts, "
    query += "count(DISTINCT note) AS notes FROM t"
    found = QueryBuilder().register("t", DeltaTable(path)).execute(query).read_all()
    rows: list[dict[str, Any]] = pa.table(found).to_pylist()
    return rows


def await_phase(installation: Installation, phase: str, starts: int) -> None:
    """Of an operation that is under way."""

    def reached() -> bool:
        told = [files.progress(state_dir, each.id) for each in files.unfinished(state_dir)]
        return any((one.phase, one.starts) == (phase, starts) for one in told)

    state_dir = installation.state_dir
    until(reached, 900)


def followed(installation: Installation) -> dict[str, Any]:
    """The end of the operation that is under way."""
    (operation,) = files.unfinished(installation.state_dir)
    return last_line(installation, "operations", operation.id, "--follow")


def big_rows(installation: Installation) -> int:
    table = DeltaTable(str(installation.folder / "lake" / "big" / "rows"))
    found = QueryBuilder().register("t", table).execute("SELECT count(*) AS n FROM t").read_all()
    return int(pa.table(found).to_pylist()[0]["n"])


@contextmanager
def changing(installation: Installation, rate: int = 1000) -> Iterator[None]:
    """So many changes per second in both tables, until the block ends."""
    began, done = time.monotonic(), 0

    def change() -> None:
        nonlocal done
        while done < rate * (time.monotonic() - began):
            connection.execute("UPDATE big.busy SET n = n + 1 WHERE id <= 50")
            connection.execute(
                "UPDATE big.rows SET amount = amount + 1 WHERE id BETWEEN 500002 AND 500051"
            )
            done += 100

    with installation.connect() as connection, meanwhile(change, every=0.02):
        yield
    print(f"{done} changes in {time.monotonic() - began:.0f} s")  # noqa: T201 - a figure
