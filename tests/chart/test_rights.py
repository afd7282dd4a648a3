"""The pods may do little, and reach and be reached by little; never are there two jobs."""

from pathlib import Path
from typing import Any, Final

import pytest

from tests.chart.rendered import VALUES, Chart, Manifest, job, named, one, pods

pytestmark = pytest.mark.integration

(EVERYTHING,) = (file for file in VALUES if named(file) == "everything")
(OWN_WORKER,) = (file for file in VALUES if named(file) == "own-worker")
(BARE,) = (file for file in VALUES if named(file) == "bare")
DNS: Final = {("UDP", 53), ("TCP", 53)}
Rule = tuple[set[tuple[str, int | str]], Any]


def rules(manifests: list[Manifest], name: str, way: str) -> list[Rule]:
    """Return the ports and the peers of each rule."""
    side = "from" if way == "ingress" else "to"
    return [
        ({(port["protocol"], port["port"]) for port in rule["ports"]}, rule.get(side))
        for rule in one(manifests, "NetworkPolicy", name)["spec"][way]
    ]


def ports(found: list[Rule]) -> set[int | str]:
    return {port for pairs, _ in found for protocol, port in pairs if protocol == "TCP"}


@pytest.mark.parametrize("values", VALUES, ids=named)
def test_a_pod_may_do_little(chart: Chart, values: Path | None) -> None:
    for pod in pods(chart.manifests(values)):
        assert pod["securityContext"] == {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "fsGroup": 1000,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context.get("readOnlyRootFilesystem", False) == (container["name"] == "job")


@pytest.mark.parametrize("values", VALUES, ids=named)
def test_there_is_one_job(chart: Chart, values: Path | None) -> None:
    found = one(chart.manifests(values), "StatefulSet")["spec"]

    assert found["replicas"] == 1
    assert found["podManagementPolicy"] == "OrderedReady"
    assert found["updateStrategy"] == {"type": "RollingUpdate"}


def test_the_volume_of_the_state_is_one_pod_s(chart: Chart) -> None:
    def claims(values: Path | None) -> dict[str, Any]:
        found = one(chart.manifests(values), "StatefulSet")["spec"].get("volumeClaimTemplates", [])
        return {claim["metadata"]["name"]: claim["spec"] for claim in found}

    assert claims(None)["state"]["accessModes"] == ["ReadWriteOncePod"]
    assert claims(None)["lake"]["accessModes"] == ["ReadWriteOnce"]
    assert claims(BARE)["lake"] == {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "shared",
        "resources": {"requests": {"storage": "10Ti"}},
    }
    assert set(claims(OWN_WORKER)) == {"state"}
    assert claims(EVERYTHING) == {}
    pod, _ = job(chart.manifests(EVERYTHING))
    existing = [
        v["persistentVolumeClaim"]["claimName"]
        for v in pod["volumes"]
        if len(v) == 2 and "persistentVolumeClaim" in v
    ]
    assert sorted(existing) == ["old-lake", "old-state"]


def test_with_a_lease_it_may_renew_that_and_nothing_else(chart: Chart) -> None:
    manifests = chart.manifests()
    lease = one(manifests, "Lease")
    role, binding = one(manifests, "Role"), one(manifests, "RoleBinding")
    pod, container = job(manifests)
    (token,) = (volume for volume in pod["volumes"] if volume["name"] == "token")

    assert "spec" not in lease  # else each upgrade would take it from its holder
    assert role["rules"] == [
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [lease["metadata"]["name"]],
            "verbs": ["get", "update"],
        }
    ]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    (subject,) = binding["subjects"]
    account = one(manifests, "ServiceAccount")
    assert subject == {
        "kind": "ServiceAccount",
        "name": account["metadata"]["name"],
        "namespace": "lakes",
    }
    assert pod["serviceAccountName"] == account["metadata"]["name"]
    assert account["automountServiceAccountToken"] is False
    assert [list(source) for source in token["projected"]["sources"]] == [
        ["serviceAccountToken"],
        ["configMap"],
    ]
    given = {variable["name"]: variable for variable in container["env"]}
    assert given["LEASE"]["value"] == lease["metadata"]["name"]
    assert given["LEASE_HOLDER"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.uid"


def test_without_a_lease_it_has_no_token(chart: Chart) -> None:
    pod, container = job(chart.manifests(OWN_WORKER))

    assert pod["serviceAccountName"] == "default"
    assert {volume["name"] for volume in pod["volumes"]} == {"config", "tmp", "secret-shop"}
    assert "env" not in container
    assert container["envFrom"] == [{"secretRef": {"name": "object-store"}}]


def test_secrets_are_files_that_others_cannot_read(chart: Chart) -> None:
    pod, container = job(chart.manifests(OWN_WORKER))
    (volume,) = (volume for volume in pod["volumes"] if "secret" in volume)
    (mount,) = (mount for mount in container["volumeMounts"] if mount["name"] == volume["name"])

    assert volume["secret"] == {"secretName": "shop", "defaultMode": 0o440}
    assert mount == {"name": "secret-shop", "mountPath": "/run/secrets/shop", "readOnly": True}


def test_it_is_reached_at_the_monitor_alone(chart: Chart) -> None:
    assert rules(chart.manifests(), "wal2lake", "ingress") == [({("TCP", "monitor")}, None)]
    ((_, peers),) = rules(chart.manifests(OWN_WORKER), "wal2lake", "ingress")
    name = "kubernetes.io/metadata.name"
    assert peers == [{"namespaceSelector": {"matchLabels": {name: "monitoring"}}}]


def test_it_reaches_the_servers_of_the_configuration_alone(chart: Chart) -> None:
    own = rules(chart.manifests(), "wal2lake", "egress")
    other = rules(chart.manifests(OWN_WORKER), "wal2lake", "egress")

    assert ports(own) == {53, 5432, 9092, 8080, 8083, 443, 6443}
    assert ports(other) == {53, 6432, 9093, 9094, 443, 80, 9000, 9095}
    assert own[0] == other[0] == (DNS, None)
    assert ({("TCP", 6432)}, [{"ipBlock": {"cidr": "10.1.0.0/16"}}]) in other


def test_the_worker_is_reached_by_the_job_alone(chart: Chart) -> None:
    manifests = chart.manifests()
    ((reached, peers),) = rules(manifests, "wal2lake-connect", "ingress")
    selector = one(manifests, "StatefulSet")["spec"]["selector"]
    worker = one(manifests, "Deployment", "wal2lake-connect")["spec"]["selector"]

    assert (reached, peers) == ({("TCP", "rest")}, [{"podSelector": selector}])
    assert ({("TCP", 8083)}, [{"podSelector": worker}]) in rules(manifests, "wal2lake", "egress")
    assert ports(rules(manifests, "wal2lake-connect", "egress")) == {53, 5432, 9092, 8080}


@pytest.mark.parametrize("values", VALUES, ids=named)
def test_selectors_find_their_pods_and_no_others(chart: Chart, values: Path | None) -> None:
    manifests = chart.manifests(values)
    labels = {
        m["metadata"]["name"]: m["spec"]["template"]["metadata"]["labels"]
        for m in manifests
        if m["kind"] in {"StatefulSet", "Deployment"}
    }
    for manifest in manifests:
        spec = manifest.get("spec") or {}
        selector = spec.get("podSelector") or spec.get("selector")
        if selector and manifest["kind"] != "ServiceMonitor":
            wanted = selector.get("matchLabels", selector).items()
            found = [name for name, these in labels.items() if wanted <= these.items()]
            assert found == [manifest["metadata"]["name"]], manifest["kind"]


@pytest.mark.parametrize(("values", "most"), [(None, 1), (EVERYTHING, 0)])
def test_a_drain_moves_it_or_waits(chart: Chart, values: Path | None, most: int) -> None:
    budget = one(chart.manifests(values), "PodDisruptionBudget")["spec"]

    assert budget["maxUnavailable"] == most
