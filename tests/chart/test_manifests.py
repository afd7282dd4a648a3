"""Each manifest is what Kubernetes and the Prometheus operator expect, key by key."""

from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft7Validator, ValidationError

from tests.chart.rendered import CHART, KUBERNETES, VALUES, Chart, Manifest, named

pytestmark = pytest.mark.integration

OLDEST: Final = "1.29.0"
OPERATED: Final = {"ServiceMonitor", "PrometheusRule"}
EXPECTED: Final = {
    "default": {
        "ConfigMap",
        "Deployment",
        "Lease",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
        "StatefulSet",
    }
}
EXPECTED["everything"] = EXPECTED["default"] | OPERATED
EXPECTED["bare"] = EXPECTED["default"] - {"NetworkPolicy", "PodDisruptionBudget"}
EXPECTED["own-worker"] = {
    *("ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "StatefulSet")
}


@pytest.mark.parametrize("values", VALUES, ids=named)
def test_helm_finds_nothing_wrong(chart: Chart, values: Path | None) -> None:
    options = ["--values", str(values)] if values else []
    done = chart.run("lint", "--strict", "--kube-version", KUBERNETES, *options, str(CHART))

    assert "0 chart(s) failed" in done.stdout, done.stdout
    assert "[WARNING]" not in done.stdout


@pytest.mark.parametrize("version", [OLDEST, KUBERNETES])
@pytest.mark.parametrize("values", VALUES, ids=named)
def test_kubernetes_knows_every_key(chart: Chart, values: Path | None, version: str) -> None:
    for manifest in chart.manifests(values):
        if manifest["kind"] not in OPERATED:
            kubernetes_validate.validate(manifest, version.removesuffix(".0"), strict=True)


@pytest.mark.parametrize("values", VALUES, ids=named)
def test_the_kinds_are_those_that_were_asked_for(chart: Chart, values: Path | None) -> None:
    manifests = chart.manifests(values)
    places = [(m["kind"], m["metadata"]["name"]) for m in manifests]

    assert {kind for kind, _ in places} == EXPECTED[named(values)]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("kind", sorted(OPERATED))
def test_the_operator_knows_every_key(chart: Chart, operator: Path, kind: str) -> None:
    (everything,) = (file for file in VALUES if named(file) == "everything")
    (manifest,) = (m for m in chart.manifests(everything) if m["kind"] == kind)
    schema = strict(definition(operator, kind))

    Draft7Validator(schema).validate(manifest)
    wrong = {**manifest, "spec": {**manifest["spec"], "intervall": "15s"}}
    with pytest.raises(ValidationError, match="intervall"):
        Draft7Validator(schema).validate(wrong)


def test_the_oldest_kubernetes_is_the_one_that_the_chart_names(chart: Chart) -> None:
    assert f'kubeVersion: ">={OLDEST}-0"' in (CHART / "Chart.yaml").read_text()
    assert chart.render("--kube-version", OLDEST).returncode == 0
    assert "incompatible with Kubernetes" in chart.render("--kube-version", "1.28.0").stderr


def test_the_check_sees_a_key_that_is_none(chart: Chart) -> None:
    manifest: Manifest = next(m for m in chart.manifests() if m["kind"] == "StatefulSet")
    wrong = {**manifest, "spec": {**manifest["spec"], "replica": 1}}

    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(wrong, "1.35", strict=True)


def definition(operator: Path, kind: str) -> Any:  # noqa: ANN401 - a JSON schema
    file = operator / f"monitoring.coreos.com_{kind.lower()}s.yaml"
    (version,) = yaml.safe_load(file.read_text())["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


def strict(schema: Any) -> Any:  # noqa: ANN401 - a JSON schema
    """Return the schema without room for keys that it does not name."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(one) for key, one in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed
