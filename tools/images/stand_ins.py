"""The base images of the stack: pulled where that is possible, else made from packages.

A stand-in has the name of the image that it stands in for, and the label ``wal2lake.stand-in``. It
has what the stack uses of that image, so that the stack's own files are the same everywhere.
"""

import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import docker
from docker.errors import APIError, BuildError, ImageNotFound

from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts.extra_sets import extra_jars
from cdc.stack.artifacts.install import install
from cdc.stack.artifacts.lock_file import KAFKA, REGISTRY, jars, set_dir
from tools import go_programs
from tools.images import debian

_LABEL: Final = "wal2lake.stand-in"
_HERE: Final = Path(__file__).parent
_LOCK: Final = _HERE / "artifacts.lock"
_PULL_SECONDS: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """An image, the folder with its Dockerfile, and what has to be there before it is built."""

    image: str
    folder: str
    release: str = ""  # of Debian, on whose image it stands
    fill: Callable[[Path], None] = lambda _: None
    """Adds to the context what is not in the folder."""
    profile: str = ""
    """The profile of Compose that alone needs it."""
    why_none: Callable[[], str | None] = lambda: None
    """Returns why it cannot be made here."""


def _broker(context: Path) -> None:
    install([KAFKA])
    (context / "jars").mkdir()
    for jar in [*jars(KAFKA), *extra_jars(_LOCK, KAFKA)]:
        shutil.copy2(jar, context / "jars")


def _registry(context: Path) -> None:
    install([REGISTRY])
    shutil.copytree(set_dir(REGISTRY), context / "application")


def _gateway(context: Path) -> None:
    shutil.copy2(go_programs.built(go_programs.GATEWAY), context)


_JAVA: Final = "eclipse-temurin:17-jre-jammy"
STAND_INS: Final = (
    StandIn(image="python:3.11-slim-bookworm", folder="python", release="bookworm"),
    StandIn(image=_JAVA, folder="java", release="bookworm"),
    StandIn(image="postgres:17", folder="postgres", release="trixie"),
    StandIn(image="prom/prometheus:v2.53.3", folder="prometheus", release="trixie"),
    StandIn(image="apache/kafka:4.2.2", folder="kafka", fill=_broker),
    StandIn(image="apicurio/apicurio-registry:3.0.9", folder="registry", fill=_registry),
    StandIn(
        image="versity/versitygw:v1.8.0",
        folder="store",
        release="trixie",
        fill=_gateway,
        profile="s3",
        why_none=go_programs.why_none,
    ),
)
"""In an order in which each can be built."""


def provide(say: Callable[[str], None], profiles: Collection[str] = ()) -> None:
    """Have every base image, also for these profiles of Compose.

    Say of each whether it was there, was pulled, or stands in. Raises SERVER_FAILED if one cannot
    be built.
    """
    client = docker.from_env(timeout=_PULL_SECONDS)
    can_pull = True
    for stand_in in (one for one in STAND_INS if one.profile in {"", *profiles}):
        if (there := _found(client, stand_in.image)) is not None:
            say(f"{stand_in.image}: {there}")
            continue
        if can_pull and (can_pull := _pulled(client, stand_in.image)):
            say(f"{stand_in.image}: pulled")
            continue
        if (why := stand_in.why_none()) is not None:
            say(f"{stand_in.image}: not here, and it cannot be made: {why}")
            continue
        _build(client, stand_in)
        say(f"{stand_in.image}: {_found(client, stand_in.image)}")


def has(image: str) -> bool:
    """Return whether the engine has an image."""
    with closing(docker.from_env()) as client:
        return _found(client, image) is not None


def _found(client: docker.DockerClient, image: str) -> str | None:
    """Return what the engine has under that name; None if it has nothing."""
    try:
        label = client.images.get(image).labels.get(_LABEL)
    except ImageNotFound:
        return None
    return "is here" if label is None else f"a stand-in: {label}"


def _pulled(client: docker.DockerClient, image: str) -> bool:
    try:
        client.images.pull(*image.split(":"))
    except APIError:
        return False
    return True


def _build(client: docker.DockerClient, stand_in: StandIn) -> None:
    if stand_in.release and _found(client, debian.image_name(stand_in.release)) is None:
        debian.make(stand_in.release)
    with _context(stand_in) as context:
        try:
            client.images.build(path=str(context), tag=stand_in.image, rm=True)
        except BuildError as error:
            lines = "".join(str(part.get("stream", "")) for part in error.build_log)
            raise CdcError(
                ErrorKind.SERVER_FAILED,
                f"the stand-in for {stand_in.image} cannot be built",
                detail=f"{error}: {lines[-800:]}",
            ) from None


@contextmanager
def _context(stand_in: StandIn) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="wal2lake-image-") as folder:
        context = Path(folder) / stand_in.folder
        shutil.copytree(_HERE / stand_in.folder, context)
        stand_in.fill(context)
        yield context
