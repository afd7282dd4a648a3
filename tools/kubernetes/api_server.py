"""Builds the API server of Kubernetes and its etcd from their Go modules, and runs them.

There is neither a node nor a controller: what is made is checked and kept, and nothing runs. The
build takes ten minutes on two cores, and is kept in wal2lake's cache.
"""

import os
import re
import secrets
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from cdc.stack.artifacts.lock_file import cache_dir
from cdc.state import file_lock
from cdc.waiting import until
from tools import go_programs

VERSION: Final = "1.35.1"
ETCD: Final = "3.6.14"
_HOST: Final = "127.0.0.1"
_STARTS_SECONDS: Final = 180
_STAGED: Final = re.compile(r"^\s*(k8s\.io/[\w.-]+) => \./staging", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ApiServer:
    """An API server that runs, and an administrator's token for it."""

    port: int
    token: str
    certificate: Path

    @property
    def url(self) -> str:
        """Its address."""
        return f"https://{_HOST}:{self.port}"

    def request(self, method: str, path: str, body: Any = None, token: str = "") -> httpx.Response:  # noqa: ANN401 - JSON
        """Send a request as the administrator, or with another's token."""
        trusted = ssl.create_default_context(cafile=self.certificate)
        headers = {"Authorization": f"Bearer {token or self.token}"}
        with httpx.Client(verify=trusted, trust_env=False, timeout=60) as client:
            return client.request(method, f"{self.url}{path}", json=body, headers=headers)


@contextmanager
def running() -> Iterator[ApiServer]:
    """Run them with nothing in them; the first call of all builds them."""
    etcd, server = _built()
    with tempfile.TemporaryDirectory(prefix="wal2lake-api-") as name, ExitStack() as processes:
        folder = Path(name)
        port, *others = _free_ports(3)
        store, peers = (f"http://{_HOST}:{other}" for other in others)
        processes.enter_context(_process(folder / "etcd.log", _etcd(etcd, folder, store, peers)))
        found = ApiServer(port, secrets.token_hex(), folder / "certificates/apiserver.crt")
        (folder / "tokens.csv").write_text(f'{found.token},admin,admin,"system:masters"\n')
        command = _api_server(server, folder, store, found.port)
        processes.enter_context(_process(folder / "api.log", command))
        until(lambda: _is_ready(found), _STARTS_SECONDS, "the API server does not answer")
        yield found


def _free_ports(number: int) -> list[int]:
    with ExitStack() as held:
        found = [held.enter_context(socket.socket()) for _ in range(number)]
        for one in found:
            one.bind((_HOST, 0))
        return [int(one.getsockname()[1]) for one in found]


def _etcd(program: Path, folder: Path, store: str, peers: str) -> list[str]:
    return [
        str(program),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={store}",
        f"--advertise-client-urls={store}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--unsafe-no-fsync",
    ]


def _api_server(program: Path, folder: Path, store: str, port: int) -> list[str]:
    key = folder / "accounts.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    return [
        str(program),
        f"--etcd-servers={store}",
        f"--bind-address={_HOST}",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'certificates'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
    ]


@contextmanager
def _process(log: Path, command: list[str]) -> Iterator[None]:
    with log.open("wb") as lines:
        process = subprocess.Popen(command, stdout=lines, stderr=lines)
    with process:
        try:
            yield
        finally:
            process.kill()


def _is_ready(server: ApiServer) -> bool:
    try:
        return server.request("GET", "/readyz").is_success
    except (OSError, httpx.HTTPError):
        return False


def _built() -> tuple[Path, Path]:
    folder = cache_dir() / f"kubernetes-{VERSION}-etcd-{ETCD}"
    etcd, server = folder / "etcd", folder / "kube-apiserver"
    with file_lock.hold(cache_dir() / "kubernetes.lock"):
        if not etcd.exists():
            _build("go.etcd.io/etcd/server/v3", ETCD, "", etcd)
        if not server.exists():
            _build("k8s.io/kubernetes", VERSION, "/cmd/kube-apiserver", server)
    return etcd, server


def _build(module: str, version: str, package: str, program: Path) -> None:
    """Build a program as a module of its own would that needs it.

    A module that takes others from its own folders is not installed by Go as it is: these others
    are published too, as version 0 of the same release.
    """
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as name:
        home = Path(name)
        definition = go_programs.downloaded(module, version, "GoMod").read_text()
        staged = sorted(set(_STAGED.findall(definition)))
        release = version.partition(".")[2]
        lines = "".join(f"replace {one} => {one} v0.{release}\n" for one in staged)
        go = re.search(r"^go .*$", definition, re.MULTILINE)
        text = f"module built\n\n{go[0] if go else ''}\n\n{lines}\nrequire {module} v{version}\n"
        (home / "go.mod").write_text(text)
        environment = {**os.environ, "GOFLAGS": "-mod=mod"}
        # The server's answer to who it is; of etcd there is no such variable.
        named = f"-ldflags=-X k8s.io/component-base/version.gitVersion=v{version}"
        what = ["build", named, "-o", program.name, module + package]
        go_programs.run(*what, at=home, environ=environment)
        (home / program.name).rename(program)
