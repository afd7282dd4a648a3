"""Lists what is in an image, as a software bill of materials in the form of CycloneDX."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from cdc.errors import CdcError, ErrorKind
from tools import go_programs

OURS: Final = ("wal2lake-job:0.1.0", "wal2lake-connect:0.1.0")
"""The images that are built from the project's Dockerfile, as docker-compose.yml names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The packages of an image by kind, each with the versions that are there."""

    kinds: dict[str, dict[str, set[str]]]  # kind, as in a package URL: name: versions

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a bill of materials."""
        kinds: dict[str, dict[str, set[str]]] = {}
        for component in json.loads(text).get("components", ()):
            if (url := component.get("purl")) is not None:
                kind = url.removeprefix("pkg:").partition("/")[0]
                names = kinds.setdefault(kind, {})
                names.setdefault(component["name"], set()).add(component["version"])
        return cls(kinds=kinds)


def write_contents(image: str, file: Path) -> Contents:
    """Write the bill of materials of an image that the engine has, and return what is in it.

    Raises PREREQUISITE if there is no Go to build the program for it, SERVER_FAILED if it fails.
    """
    if (why := go_programs.why_none()) is not None:
        raise CdcError(ErrorKind.PREREQUISITE, f"the contents of {image} are not listed: {why}")
    syft = go_programs.built(go_programs.SYFT)
    file.parent.mkdir(parents=True, exist_ok=True)
    command = [
        str(syft),
        "scan",
        f"docker:{image}",
        "--quiet",
        "--output",
        f"cyclonedx-json={file}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        what, detail = f"the contents of {image} cannot be listed", done.stderr.strip()[-800:]
        raise CdcError(ErrorKind.SERVER_FAILED, what, detail=detail)
    return Contents.parse(file.read_text())
