"""Test the job's pages for monitoring: what a probe, a scraper and a person get."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from cdc.client.status.components import JobPart
from cdc.client.status.status import Status
from cdc.config import Config, Lake, Monitor, Source
from cdc.errors import CdcError, ErrorKind
from cdc.job.monitor import Pages, monitored
from cdc.state import monitor_address
from tests.unit.client.test_status_findings import DEAD, table, well

STARTING = JobPart(state="starting", pid=7, alive=True)


def config(folder: Path, listen: str = "127.0.0.1:0") -> Config:
    return Config(
        source=Source(tables=["a.*"]),
        lake=Lake(path=str(folder / "lake")),
        monitor=Monitor(listen=listen),
        state_dir=folder,
    )


@pytest.fixture
def asked(tmp_path: Path) -> Callable[[str, Status], tuple[int, str]]:
    def ask(path: str, now: Status) -> tuple[int, str]:
        page = Pages(config(tmp_path), lambda _: now).page(path)
        return int(page.code), page.body.decode()

    return ask


Asked = Callable[[str, Status], tuple[int, str]]


@pytest.mark.parametrize(
    ("now", "healthy", "ready"),
    [
        (well(), 200, 200),
        (replace(well(), job=STARTING), 200, 503),
        (replace(well(), tables=(table("stopped", "why"),)), 200, 200),
        (replace(well(), job=DEAD), 503, 503),
    ],
)
def test_health_and_readiness(asked: Asked, now: Status, healthy: int, ready: int) -> None:
    assert asked("/healthz", now)[0] == healthy
    assert asked("/readyz", now)[0] == ready


def test_a_page_says_what_is_wrong(asked: Asked) -> None:
    assert "the job is not running" in asked("/healthz", replace(well(), job=DEAD))[1]
    assert asked("/readyz", replace(well(), job=STARTING))[1] == "the job is starting\n"
    assert "/metrics, /healthz, /readyz, /status.json" in asked("/", well())[1]


def test_the_status_is_json(asked: Asked) -> None:
    code, text = asked("/status.json", well())

    assert code == 200
    assert json.loads(text)["tables"][0]["table"] == "a.b"


def test_requests_of_a_moment_share_one_look(tmp_path: Path) -> None:
    looks = list[Config]()

    def look(of: Config) -> Status:
        looks.append(of)
        return well()

    pages = Pages(config(tmp_path), look)
    for path in ("/healthz", "/metrics", "/status.json"):
        pages.page(path)

    assert len(looks) == 1


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/status.json"])
def test_a_page_names_a_store_that_does_not_answer(tmp_path: Path, path: str) -> None:
    def look(_: Config) -> Status:
        raise OSError("Generic S3 error: Error performing GET http://store/x?sig=canary in 30 s")

    page = Pages(config(tmp_path), look).page(path)

    assert page.code == 503
    text = page.body.decode()
    assert text.startswith("the object store of the lake does not do what is asked")
    assert "; remedy: see docs/object-store.md" in text
    assert "canary" not in text


def test_a_defect_is_not_taken_for_a_store(tmp_path: Path) -> None:
    def look(_: Config) -> Status:
        raise OSError("something else")

    with pytest.raises(OSError, match="something else"):
        Pages(config(tmp_path), look).page("/healthz")


def test_pages_are_served_from_the_first_moment(tmp_path: Path) -> None:
    with monitored(config(tmp_path)):
        url = json.loads((tmp_path / "monitor.json").read_text())["url"]
        metrics, missing = httpx.get(f"{url}/metrics"), httpx.head(f"{url}/nothing")

    assert metrics.status_code == 200
    assert 'wal2lake_job_memory_bytes{process="python"}' in metrics.text
    assert (missing.status_code, missing.text) == (404, "")
    assert monitor_address.read(tmp_path, pid=1) == ""
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/metrics")


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("evil.example", 421),
        ("evil.example:9464", 421),
        ("127.0.0.1.evil.example", 421),
        ("[::1", 421),
        ("localhost", 404),
        ("localhost:9464", 404),
        ("127.0.0.1:1", 404),
        ("[::1]:9464", 404),
    ],
)
def test_on_the_loopback_a_name_of_a_stranger_is_refused(
    tmp_path: Path, host: str, code: int
) -> None:
    """As of a web page whose name resolves to the loopback: the browser lets it read the answer."""
    with monitored(config(tmp_path)):
        url = json.loads((tmp_path / "monitor.json").read_text())["url"]
        answer = httpx.get(f"{url}/nothing", headers={"Host": host})

    assert answer.status_code == code
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_elsewhere_any_name_will_do(tmp_path: Path) -> None:
    """Prometheus asks by the names of services."""
    with monitored(config(tmp_path, "0.0.0.0:0")):
        url = json.loads((tmp_path / "monitor.json").read_text())["url"]
        there = url.replace("0.0.0.0", "127.0.0.1")
        answer = httpx.get(f"{there}/nothing", headers={"Host": "job.wal2lake.svc:9464"})

    assert answer.status_code == 404


def test_nothing_is_changed_by_a_request(tmp_path: Path) -> None:
    with monitored(config(tmp_path)):
        url = json.loads((tmp_path / "monitor.json").read_text())["url"]
        codes = [httpx.request(way, f"{url}/metrics").status_code for way in ("POST", "DELETE")]

    assert codes == [501, 501]


def test_a_job_without_a_state_directory_makes_it(tmp_path: Path) -> None:
    """``wal2lake run`` may be the first that runs here."""
    with monitored(config(tmp_path / "new" / "state")):
        assert (tmp_path / "new" / "state" / "monitor.json").exists()


def test_an_address_in_use_is_named(tmp_path: Path) -> None:
    with monitored(config(tmp_path)):
        url = json.loads((tmp_path / "monitor.json").read_text())["url"]
        taken = url.removeprefix("http://")
        with (
            pytest.raises(CdcError, match=f"monitor.listen: {taken}") as refused,
            monitored(config(tmp_path, taken)),
        ):
            pass

    assert refused.value.kind is ErrorKind.CONFIG


def test_without_an_address_there_are_no_pages(tmp_path: Path) -> None:
    with monitored(config(tmp_path, "")):
        assert not (tmp_path / "monitor.json").exists()


@pytest.mark.parametrize("listen", ["9464", "127.0.0.1:", ":9464", "127.0.0.1:70000", "a:b"])
def test_an_address_needs_host_and_port(listen: str) -> None:
    with pytest.raises(ValueError, match="must be an address and a port"):
        Monitor(listen=listen)
