"""A real API server takes the chart, refuses its pods nothing, and keeps its lease.

No node runs a pod. What is shown is what the server decides: what is valid, what the standard
*restricted* admits, what the account may do, and who of two holds the lease.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.chart.pods import ORDERLY, WORK, Pod, cut_off, line, pod
from tests.chart.rendered import CHART, ROOT, VALUES, Chart, Manifest, named
from tools.kubernetes import api_server
from tools.kubernetes.api_server import ApiServer

pytestmark = [pytest.mark.integration, pytest.mark.deep]

NAMESPACE: Final = "lakes"
CORE: Final = f"/api/v1/namespaces/{NAMESPACE}"
LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
KINDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STANDARD: Final = "pod-security.kubernetes.io/enforce"
SECONDS: Final = 6
Install = Callable[..., str]


@pytest.fixture(scope="module")
def server(chart: Chart, operator: Path) -> Iterator[ApiServer]:
    """Yield a server with a namespace that admits only restricted pods."""
    assert chart
    with api_server.running() as found:
        space = {"metadata": {"name": NAMESPACE, "labels": {STANDARD: "restricted"}}}
        made = [found.request("POST", "/api/v1/namespaces", space)]
        # No controller makes it here.
        account = {"metadata": {"name": "default"}}
        made.append(found.request("POST", f"{CORE}/serviceaccounts", account))
        for kind in ("servicemonitors", "prometheusrules"):
            file = operator / f"monitoring.coreos.com_{kind}.yaml"
            made.append(found.request("POST", KINDS, yaml.safe_load(file.read_text())))
        assert [answer.text for answer in made if not answer.is_success] == []
        yield found


@pytest.fixture
def install(chart: Chart, server: ApiServer) -> Iterator[Install]:
    """Yield a function that installs or upgrades the release; it is removed again."""
    reach = ["--kube-apiserver", server.url, "--kube-token", server.token]
    reach += ["--kube-ca-file", str(server.certificate), "--namespace", NAMESPACE]

    def install(*options: str) -> str:
        done = chart.run("upgrade", "--install", "wal2lake", str(CHART), *reach, *options)
        assert done.returncode == 0, done.stderr
        return done.stderr

    yield install
    chart.run("uninstall", "wal2lake", *reach)


@pytest.mark.parametrize("values", VALUES, ids=named)
def test_the_chart_is_installed(
    server: ApiServer, install: Install, chart: Chart, values: Path | None
) -> None:
    said = install(*(["--values", str(values)] if values else []))

    assert "unknown field" not in said
    assert "would violate" not in said  # the standard, of a pod that a set would make
    for manifest in chart.manifests(values):
        if manifest["kind"] in {"StatefulSet", "Deployment"}:
            made = server.request("POST", f"{CORE}/pods?dryRun=All", _pod_of(manifest))
            assert made.is_success, made.text


def test_the_standard_is_enforced(server: ApiServer, install: Install, chart: Chart) -> None:
    install()
    found = _pod_of(next(m for m in chart.manifests() if m["kind"] == "StatefulSet"))
    found["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True

    refused = server.request("POST", f"{CORE}/pods?dryRun=All", found)

    assert "allowPrivilegeEscalation" in refused.json()["message"]


def _pod_of(manifest: Manifest) -> Manifest:
    """Return the pod that a controller would make; claims and secrets need not exist."""
    spec = yaml.safe_load(yaml.safe_dump(manifest["spec"]["template"]["spec"]))
    claims = [one["metadata"]["name"] for one in manifest["spec"].get("volumeClaimTemplates", [])]
    spec["volumes"] += [{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in claims]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec}


def _token(server: ApiServer) -> str:
    path = f"{CORE}/serviceaccounts/wal2lake/token"
    answer = server.request("POST", path, {"spec": {"expirationSeconds": 3600}})
    return str(answer.json()["status"]["token"])


def test_the_account_may_renew_its_lease_and_nothing_else(
    server: ApiServer, install: Install
) -> None:
    install()
    token = _token(server)

    def code(method: str, path: str, body: Any = None) -> int:  # noqa: ANN401 - JSON
        return server.request(method, path, body, token).status_code

    lease = server.request("GET", f"{LEASES}/wal2lake", token=token).json()
    other = {"metadata": {"name": "other"}}
    assert server.request("POST", LEASES, other).is_success
    assert code("PUT", f"{LEASES}/wal2lake", lease) == 200
    assert code("GET", f"{LEASES}/other") == 403
    assert code("POST", LEASES, {"metadata": {"name": "third"}}) == 403
    assert code("DELETE", f"{LEASES}/wal2lake") == 403
    for path in ("secrets", "configmaps", "pods"):
        assert code("GET", f"{CORE}/{path}") == 403
    assert server.request("DELETE", f"{LEASES}/other").is_success


@pytest.fixture
def start(server: ApiServer, install: Install, tmp_path: Path) -> Iterator[Callable[..., Pod]]:
    """Yield a function that starts a pod's command as the chart does; all are ended."""
    install()
    (tmp_path / "token").write_text(_token(server))
    (tmp_path / "ca.crt").write_bytes(server.certificate.read_bytes())
    with ExitStack() as pods:

        def start(holder: str, work: str = WORK, port: int | None = None) -> Pod:
            program = [sys.executable, str(ROOT / "deploy" / "lease.py")]
            options = ["--seconds", str(SECONDS), "--account", str(tmp_path), "--"]
            environment = {
                **os.environ,
                "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                "KUBERNETES_SERVICE_PORT": str(port or server.port),
                "LEASE": "wal2lake",
                "LEASE_NAMESPACE": NAMESPACE,
                "LEASE_HOLDER": holder,
            }
            command = [*program, *options, sys.executable, "-c", work]
            return pods.enter_context(pod(command, environment))

        yield start


def _spec(server: ApiServer) -> dict[str, Any]:
    return dict(server.request("GET", f"{LEASES}/wal2lake").json()["spec"])


def test_the_lease_is_taken_kept_in_an_upgrade_and_given_back(
    server: ApiServer, install: Install, start: Callable[..., Pod]
) -> None:
    first = start("one", ORDERLY)
    assert line(first.stdout) == "ready"
    second = start("two", ORDERLY)
    assert line(second.stderr) == "lease: waiting for one, which holds it"

    install("--set", "podAnnotations.changed=yes")
    assert _spec(server)["holderIdentity"] == "one"
    first.terminate()

    assert first.wait() == 7
    assert line(second.stdout) == "ready"
    assert (_spec(server)["holderIdentity"], _spec(server)["leaseTransitions"]) == ("two", 2)
    second.terminate()
    assert second.wait() == 7
    assert "holderIdentity" not in _spec(server)


@pytest.mark.parametrize("fault", ["dropped", "stalled"])
def test_a_pod_that_is_cut_off_is_dead_before_another_begins(
    server: ApiServer, start: Callable[..., Pod], fault: str
) -> None:
    cut_off(server.port, start, fault)


def test_a_certificate_of_another_is_not_trusted(
    server: ApiServer, start: Callable[..., Pod], tmp_path: Path
) -> None:
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=other"]
    make += ["-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "ca.crt")]
    subprocess.run(make, check=True, capture_output=True)

    assert line(start("one").stderr) == "lease: it cannot be taken: ConnectError"
    assert "holderIdentity" not in server.request("GET", f"{LEASES}/wal2lake").text
