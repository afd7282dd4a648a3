"""Renders the chart with Helm, and finds what is in it."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from cdc.config import Config, load

ROOT: Final = Path(__file__).resolve().parents[2]
CHART: Final = ROOT / "deploy" / "chart"
VALUES: Final = (None, *sorted(Path(__file__).parent.glob("values/*.yaml")))
"""The files of values that are rendered; None for the chart's own."""
KUBERNETES: Final = "1.35.0"
Manifest = dict[str, Any]


def named(values: Path | None) -> str:
    """Return the name of a file of values, for a test."""
    return values.stem if values else "default"


@dataclass(slots=True)
class Chart:
    """Renders the chart with Helm, and keeps what each file of values gives."""

    helm: Path
    home: Path
    _rendered: dict[Path | None, list[Manifest]] = field(default_factory=dict)

    def manifests(self, values: Path | None = None) -> list[Manifest]:
        """Return what is rendered with a file of values."""
        if values not in self._rendered:
            options = ["--values", str(values)] if values else []
            done = self.render(*options)
            assert done.returncode == 0, done.stderr
            self._rendered[values] = parsed(done.stdout)
        return self._rendered[values]

    def render(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Render with options of Helm."""
        own = ["template", "wal2lake", str(CHART), "--namespace", "lakes"]
        return self.run(*own, "--kube-version", KUBERNETES, *options)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Call Helm, which keeps its own files in a folder of this run."""
        environment = {**os.environ, "HELM_CONFIG_HOME": str(self.home), "HELM_NO_PLUGINS": "1"}
        command = [str(self.helm), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def parsed(text: str) -> list[Manifest]:
    """Return the manifests in Helm's output."""
    return [one for one in yaml.safe_load_all(text) if one]


def one(manifests: list[Manifest], kind: str, name: str = "wal2lake") -> Manifest:
    """Return the manifest of a kind and name; there has to be exactly one."""
    (found,) = (m for m in manifests if m["kind"] == kind and m["metadata"]["name"] == name)
    return found


def pods(manifests: list[Manifest]) -> Iterator[Manifest]:
    """Yield the specification of each kind of pod."""
    for manifest in manifests:
        if manifest["kind"] in {"StatefulSet", "Deployment"}:
            yield manifest["spec"]["template"]["spec"]


def job(manifests: list[Manifest]) -> tuple[Manifest, Manifest]:
    """Return the specification of the job's pod, and that of its only container."""
    pod = one(manifests, "StatefulSet")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return pod, container


def loaded(manifests: list[Manifest], folder: Path) -> Config:
    """Return the configuration as the job loads it."""
    file = folder / "wal2lake.yaml"
    file.write_text(one(manifests, "ConfigMap")["data"]["wal2lake.yaml"])
    return load(file, environ={})
