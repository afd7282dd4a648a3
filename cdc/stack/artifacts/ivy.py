"""Downloads artifacts with the Ivy that pyspark brings: exact files, no Maven, no resolution."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts.lock_file import Artifact

ROOT_VARIABLE = "WAL2LAKE_MAVEN_ROOT"
"""Environment variable: a Maven repository to use instead of Central, such as a mirror."""

_POLL_SECONDS = 0.2
_TIMEOUT_MS = 60_000

Wanted = Mapping[str, Sequence[Artifact]]
OnBytes = Callable[[int], None]


def download(wanted: Wanted, directory: Path, java: Path, on_bytes: OnBytes) -> None:
    """Download every wanted file to ``<directory>/files/<set>/``, unless it has arrived before.

    ``on_bytes`` is called with the number of bytes that have arrived. Raises UNREACHABLE, naming
    what is missing; the next call continues where this one ended.
    """
    directory.mkdir(parents=True, exist_ok=True)
    # Only files of the current lock may be there; Ivy copies them again from its cache.
    shutil.rmtree(directory / "files", ignore_errors=True)
    (directory / "settings.xml").write_text(_settings())
    (directory / "ivy.xml").write_text(_module(wanted))
    log = directory / "ivy.log"
    with log.open("w") as output:
        process = subprocess.Popen(_command(directory, java), stdout=output, stderr=output)
        try:
            _await(process, directory, on_bytes)
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        raise _failure(log.read_text())


def _await(process: subprocess.Popen[bytes], directory: Path, on_bytes: OnBytes) -> None:
    while process.poll() is None:
        try:
            process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            on_bytes(_arrived(directory / "cache"))


def _arrived(cache: Path) -> int:
    """Return the bytes of complete and partial files; a file may be renamed during the look."""
    total = 0
    for path in cache.rglob("*"):
        if path.name.endswith((".jar", ".gz", ".part")):
            try:
                total += path.stat().st_size
            except FileNotFoundError:
                continue
    return total


def _command(directory: Path, java: Path) -> list[str]:
    pattern = directory / "files/[conf]/[artifact]-[revision](-[classifier]).[ext]"
    main = [str(java), "-cp", str(_ivy_jar()), "org.apache.ivy.Main"]
    inputs = ["-settings", directory / "settings.xml", "-ivy", directory / "ivy.xml"]
    outputs = ["-cache", directory / "cache", "-retrieve", pattern]
    return main + [str(part) for part in (*inputs, *outputs)]


def _ivy_jar() -> Path:
    """Return the path of Ivy's jar, without importing pyspark, which would take a second."""
    spec = find_spec("pyspark")
    places = spec.submodule_search_locations if spec else None
    jars = [jar for place in places or () for jar in Path(place).glob("jars/ivy-*.jar")]
    if not jars:
        raise CdcError(
            ErrorKind.PREREQUISITE, "pyspark is not installed", remedy="run make install"
        )
    return jars[0]


def _settings() -> str:
    root = os.environ.get(ROOT_VARIABLE)
    where = f" root={quoteattr(root)}" if root else ""
    return (
        '<ivysettings><settings defaultResolver="central"/>'
        '<timeout-constraints><timeout-constraint name="patience"'
        f' connectionTimeout="{_TIMEOUT_MS}" readTimeout="{_TIMEOUT_MS}"/></timeout-constraints>'
        '<resolvers><ibiblio name="central" m2compatible="true" usepoms="false"'
        f' useMavenMetadata="false" timeoutConstraint="patience"{where}/></resolvers>'
        "</ivysettings>\n"
    )


def _module(wanted: Wanted) -> str:
    """Return the ivy.xml with a configuration per set.

    A single configuration could hold only one version of a module.
    """
    confs = "".join(f"<conf name={quoteattr(name)}/>" for name in wanted)
    lines = "\n".join(_dependency(name, one) for name, many in wanted.items() for one in many)
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">\n'
        '<info organisation="wal2lake" module="artifacts"/>\n'
        f"<configurations>{confs}</configurations>\n<dependencies>\n{lines}\n</dependencies>\n"
        "</ivy-module>\n"
    )


def _dependency(conf: str, artifact: Artifact) -> str:
    classifier = f" m:classifier={quoteattr(artifact.classifier)}" if artifact.classifier else ""
    kind = quoteattr(artifact.extension)
    return (
        f"<dependency org={quoteattr(artifact.group)} name={quoteattr(artifact.name)}"
        f" rev={quoteattr(artifact.version)} conf={quoteattr(f'{conf}->default')}"
        f' transitive="false"><artifact name={quoteattr(artifact.name)} type={kind} ext={kind}'
        f"{classifier}/></dependency>"
    )


def _failure(log: str) -> CdcError:
    missing = re.findall(r"\[(?:FAILED|NOT FOUND)\s*\]\s*(\S+?)!", log)
    missing += re.findall(r":: (\S+): (?:not found|configuration)", log)
    first = missing[0] if missing else "the artifacts"
    reasons = re.findall(r"(?:Server access error.*|\S*Exception: .*|\(.*Exception.*\))", log)
    detail = reasons[0].strip("()") if reasons else " / ".join(log.strip().splitlines()[-3:])
    return CdcError(
        ErrorKind.UNREACHABLE,
        f"could not download {first}",
        detail=detail[:300],
        remedy=f"check the network, or name a mirror in {ROOT_VARIABLE}; then run the command "
        "again: files that have arrived are kept",
    )
