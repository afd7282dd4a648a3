"""What the chart says agrees with the configuration, the images and the container stack."""

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cdc.cli import COMMANDS
from cdc.job.monitor import Pages
from tests.chart.rendered import (
    CHART,
    ROOT,
    VALUES,
    Chart,
    Manifest,
    job,
    loaded,
    named,
    one,
    parsed,
    pods,
)
from tests.documents import commands, options

pytestmark = pytest.mark.integration

COMPOSE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
DOCKERFILE: Final = (ROOT / "deploy" / "Dockerfile").read_text()
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
(EVERYTHING,) = (file for file in VALUES if named(file) == "everything")
(OWN_WORKER,) = (file for file in VALUES if named(file) == "own-worker")
(BARE,) = (file for file in VALUES if named(file) == "bare")


def mounted(container: Manifest) -> dict[str, str]:
    return {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}


@pytest.mark.parametrize("values", VALUES, ids=named)
def test_the_job_loads_the_configuration(chart: Chart, values: Path | None, tmp_path: Path) -> None:
    manifests = chart.manifests(values)
    config = loaded(manifests, tmp_path)
    _, container = job(manifests)
    places = mounted(container)
    files = [
        str(file) for file in (config.source.password_file, config.connect.password_file) if file
    ]

    assert config.kafka.bootstrap_servers
    assert None not in {config.source.url, config.connect.url, config.registry.url}
    # Of the volume itself only the group is the job's, which makes its state directory private.
    assert str(config.state_dir.parent) in places
    assert config.lake.path.startswith("/lake") == ("/lake" in places)
    assert [file for file in files if str(Path(file).parent) not in places] == []


def test_large_numbers_and_lists_arrive_as_they_are(chart: Chart, tmp_path: Path) -> None:
    config = loaded(chart.manifests(OWN_WORKER), tmp_path)

    assert config.job.max_events_per_batch == 1_000_000
    assert config.source.tables == ["shop.*", "audit.events"]
    assert config.connect.source_password == "${file:/run/secrets/pg:password}"


@pytest.mark.parametrize("values", VALUES, ids=named)
def test_the_probes_ask_pages_that_there_are(
    chart: Chart, values: Path | None, tmp_path: Path
) -> None:
    manifests = chart.manifests(values)
    config = loaded(manifests, tmp_path)
    _, container = job(manifests)
    host, _, port = config.monitor.listen.rpartition(":")
    asked = {
        name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")
    }

    assert host == "0.0.0.0"
    assert container["ports"] == [
        {"name": "monitor", "containerPort": int(port), "protocol": "TCP"}
    ]
    assert {get["port"] for get in asked.values()} == {"monitor"}
    assert {name: get["path"] for name, get in asked.items()} == {
        "startup": "/healthz",
        "liveness": "/healthz",
        "readiness": "/readyz",
    }
    assert {get["path"] for get in asked.values()} <= set(Pages(config)._pages)
    assert one(manifests, "Service")["spec"]["ports"][0]["port"] == int(port)


def test_a_start_may_take_as_long_as_a_lease_and_the_classes_need(chart: Chart) -> None:
    _, container = job(chart.manifests(EVERYTHING))
    probe = container["startupProbe"]
    schema = (CHART / "values.schema.json").read_text()
    (longest,) = re.findall(r'"seconds": {[^}]*"maximum": (\d+)', schema)

    assert probe["periodSeconds"] * probe["failureThreshold"] >= int(longest) + 300


def test_versions_are_those_of_the_project_and_of_the_stack(chart: Chart) -> None:
    described = yaml.safe_load((CHART / "Chart.yaml").read_text())
    images = [pod["containers"][0]["image"] for pod in pods(chart.manifests())]
    services = COMPOSE["services"]

    assert described["version"] == described["appVersion"] == PROJECT["version"]
    assert sorted(images) == sorted(services[name]["image"] for name in ("job", "connect"))
    _, container = job(chart.manifests(OWN_WORKER))
    assert container["image"] == "registry.example/wal2lake-job:0.1.0-a"


def test_the_job_gets_what_the_stack_gives_it(chart: Chart) -> None:
    service = COMPOSE["services"]["job"]
    pod, container = job(chart.manifests())

    assert container["resources"]["limits"] == {"memory": "2500Mi"}
    assert service["mem_limit"] == "${JOB_MEMORY:-2500m}"
    assert (pod["terminationGracePeriodSeconds"], service["stop_grace_period"]) == (120, "2m")
    assert service["read_only"]
    assert "/tmp" in mounted(container)
    assert mounted(container)["/tmp"] == "tmp"
    assert {"name": "tmp", "emptyDir": {}} in pod["volumes"]
    # Processes that it leaves behind are reaped: there by the engine's init, here by the pod's.
    assert service["init"]
    assert pod["shareProcessNamespace"]


def test_the_worker_gets_what_the_stack_gives_it(chart: Chart) -> None:
    service = COMPOSE["services"]["connect"]
    manifests = chart.manifests(EVERYTHING)
    pod = one(manifests, "Deployment", "wal2lake-connect")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    text = one(manifests, "ConfigMap", "wal2lake-connect")["data"]["worker.properties"]
    original = (ROOT / "connectors" / "worker.properties").read_text()

    assert (pod["terminationGracePeriodSeconds"], service["stop_grace_period"]) == (60, "1m")
    assert {variable["name"] for variable in container["env"]} == set(service["environment"])
    assert text.startswith(original)
    assert text.removeprefix(original).splitlines() == [
        f"{name}.storage.replication.factor=3" for name in ("config", "offset", "status")
    ]
    place = mounted(container)
    assert "/opt/connect/worker.properties" in place
    assert '"/opt/connect/worker.properties"]' in DOCKERFILE


@pytest.mark.parametrize(("values", "leased"), [(None, True), (OWN_WORKER, False)])
def test_the_command_is_that_of_the_image(chart: Chart, values: Path | None, leased: bool) -> None:
    _, container = job(chart.manifests(values))
    called = [*container["command"], *container["args"]]
    (entry,) = re.findall(r'^ENTRYPOINT \["(wal2lake)"\]', DOCKERFILE, re.MULTILINE)
    (arguments,) = re.findall(r'^CMD \[(".*")\]', DOCKERFILE, re.MULTILINE)
    image = [entry, *(part.strip().strip('"') for part in arguments.split(","))]

    assert called[-len(image) :] == image
    assert (called[:2] == ["python", "/opt/wal2lake/lease.py"]) == leased
    assert "deploy/lease.py /opt/wal2lake/" in DOCKERFILE
    assert "up" in COMMANDS
    assert "--await-tables" in options(commands()["up"])


def test_the_image_has_what_the_lease_imports() -> None:
    tree = ast.parse((ROOT / "deploy" / "lease.py").read_text())
    nodes = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {
        name.partition(".")[0]
        for node in nodes
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else _names(node))
    }
    packages = {re.split(r"[\[>=~]", one)[0] for one in PROJECT["dependencies"]}

    assert names - sys.stdlib_module_names <= packages


def _names(node: ast.Import) -> list[str]:
    return [one.name for one in node.names]


def test_a_new_epoch_is_begun_by_an_option(chart: Chart) -> None:
    done = chart.render("--set", "newEpoch=true")
    _, container = job(parsed(done.stdout))

    assert container["args"][-1] == "--new-epoch"
    assert "--new-epoch" in options(commands()["up"])


def test_the_values_of_the_document_are_good(chart: Chart, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "values.yaml").write_text(text)
    config = loaded(chart.manifests(tmp_path / "values.yaml"), tmp_path)

    assert config.source.tables == ["shop.*"]
    assert config.connect.url == "http://wal2lake-connect:8083"


def test_the_rules_are_the_stack_s(chart: Chart) -> None:
    manifests = chart.manifests(EVERYTHING)
    rules = yaml.safe_load((ROOT / "deploy" / "observe" / "alerts.yml").read_text())
    monitor = one(manifests, "ServiceMonitor")["spec"]
    labels = one(manifests, "Service")["metadata"]["labels"]

    assert one(manifests, "PrometheusRule")["spec"] == rules
    # The rules ask for up{job="wal2lake"}.
    assert labels[monitor["jobLabel"]] == "wal2lake"
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    assert [end["port"] for end in monitor["endpoints"]] == ["monitor"]


def test_a_changed_configuration_makes_the_pod_anew(chart: Chart) -> None:
    def annotations(values: Path | None) -> dict[str, str]:
        template = one(chart.manifests(values), "StatefulSet")["spec"]["template"]
        return dict(template["metadata"]["annotations"])

    assert annotations(None)["wal2lake/config"] != annotations(EVERYTHING)["wal2lake/config"]
    assert annotations(OWN_WORKER)["example/owner"] == "data"


def test_what_is_packed_has_the_contents_of_its_links(chart: Chart, tmp_path: Path) -> None:
    done = chart.run("package", str(CHART), "--destination", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (pack,) = tmp_path.iterdir()
    rendered = chart.run("template", "wal2lake", str(pack), "--kube-version", "1.35.0")

    assert "task.shutdown.graceful.timeout.ms=30000" in rendered.stdout
