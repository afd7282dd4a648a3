"""The lock names exact files, and downloads are installed completely or not at all."""

import hashlib
import http.server
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts import install, ivy, lock_file
from cdc.stack.artifacts.lock_file import Artifact

LINE = "org.example:thing:1.0:all@tar.gz " + "0" * 64 + " 12"


def test_a_line_names_one_file() -> None:
    artifact = Artifact.parse(LINE)
    assert (artifact.group, artifact.name, artifact.version) == ("org.example", "thing", "1.0")
    assert artifact.file_name == "thing-1.0-all.tar.gz"
    assert Artifact.parse("g:n:2 ab 1").file_name == "n-2.jar"


def test_the_lock_is_exact() -> None:
    lock = lock_file.read_lock()
    assert set(lock_file.every_set()) <= set(lock)
    for entries in lock.values():
        assert len({entry.file_name for entry in entries}) == len(entries)
        for entry in entries:
            assert len(entry.sha256) == 64
            assert entry.size > 0
            assert not set(entry.version) & set("[](),+*")


def test_a_changed_lock_is_another_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    before = lock_file.set_dir("spark")
    lock = dict(lock_file.read_lock())
    lock["spark"] = (replace(lock["spark"][0], sha256="f" * 64), *lock["spark"][1:])
    monkeypatch.setattr(lock_file, "read_lock", lambda: lock)
    assert lock_file.set_dir("spark") != before


def test_jars_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(lock_file.CACHE_VARIABLE, str(tmp_path))
    with pytest.raises(CdcError) as caught:
        lock_file.spark_jars()
    assert caught.value.kind is ErrorKind.PREREQUISITE
    assert str(tmp_path) in caught.value.detail


def jar(content: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("content", content)
    return buffer.getvalue()


@dataclass(slots=True)
class Repository:
    """Describes a Maven repository on loopback; files named in ``cut`` break off in the middle."""

    files: dict[str, bytes]
    cut: set[str] = field(default_factory=set)
    served: list[str] = field(default_factory=list)
    url: str = ""


@contextmanager
def serving(repository: Repository) -> Iterator[Repository]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def answer(self, *, with_body: bool) -> None:
            name = self.path.rpartition("/")[2]
            body = repository.files.get(name)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                repository.served.append(name)
                self.wfile.write(body[: len(body) // 2] if name in repository.cut else body)

        def log_message(self, *_arguments: Any) -> None:  # noqa: ANN401 - http.server's signature
            """Print nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        repository.url = f"http://127.0.0.1:{server.server_port}/"
        yield repository
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def locked(name: str, content: bytes) -> Artifact:
    digest = hashlib.sha256(content).hexdigest()
    return Artifact.parse(f"org.example:{name}:1.0 {digest} {len(content)}")


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Repository]:
    """Serve two jars, with a lock of their own and an empty cache."""
    contents = {name: jar(name * 50_000) for name in ("alpha", "beta")}
    lock = {"spark": tuple(locked(name, content) for name, content in contents.items())}
    monkeypatch.setattr(lock_file, "read_lock", lambda: lock)
    monkeypatch.setattr(install, "read_lock", lambda: lock)
    monkeypatch.setenv(lock_file.CACHE_VARIABLE, str(tmp_path / "cache"))
    files = {f"{name}-1.0.jar": content for name, content in contents.items()}
    with serving(Repository(files)) as served:
        monkeypatch.setenv(ivy.ROOT_VARIABLE, served.url)
        yield served


@pytest.mark.integration
def test_an_interrupted_download_is_named_and_continues_where_it_ended(
    repository: Repository,
) -> None:
    repository.cut.add("beta-1.0.jar")
    with pytest.raises(CdcError) as caught:
        install.install(["spark"])
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert "beta" in str(caught.value)
    assert "again" in caught.value.remedy
    assert not lock_file.is_installed("spark")

    repository.cut.clear()
    repository.served.clear()
    install.install(["spark"])
    installed = {path.name: path.read_bytes() for path in lock_file.spark_jars()}
    assert installed == repository.files
    assert "alpha-1.0.jar" not in repository.served

    repository.served.clear()
    install.install(["spark"])
    assert repository.served == []


@pytest.mark.integration
def test_a_file_that_the_lock_does_not_know_is_refused_and_fetched_anew(
    repository: Repository,
) -> None:
    right = repository.files["beta-1.0.jar"]
    repository.files["beta-1.0.jar"] = jar("another")
    with pytest.raises(CdcError) as caught:
        install.install(["spark"])
    assert "beta-1.0.jar is damaged" in caught.value.message
    assert not lock_file.is_installed("spark")

    repository.files["beta-1.0.jar"] = right
    install.install(["spark"])
    assert len(lock_file.spark_jars()) == 2


@pytest.mark.integration
def test_a_missing_file_is_named(repository: Repository) -> None:
    del repository.files["alpha-1.0.jar"]
    with pytest.raises(CdcError) as caught:
        install.install(["spark"])
    assert "alpha" in caught.value.message
