"""One run makes the archive of a program's classes; later ones map it, and none is half there."""

import multiprocessing
import os
import signal
import sys
from pathlib import Path

import pytest

from cdc.stack.artifacts import class_archive
from cdc.stack.artifacts.class_archive import ClassArchive
from cdc.stack.artifacts.lock_file import CACHE_VARIABLE
from cdc.stack.artifacts.prerequisites import Java
from cdc.stack.process.process import Command, Process
from cdc.state.directory import StateDir
from cdc.waiting import until

JARS = [Path("/jars/a.jar"), Path("/jars/b.jar")]
WRITES = "import signal, sys, time\n{on_signal}\nprint('up', flush=True)\ntime.sleep(600)"
WHEN_ASKED = """\
def end(*_):
    open(sys.argv[1], "w").write("classes")
    sys.exit(143)
signal.signal(signal.SIGTERM, end)"""
NEVER = 'signal.signal(signal.SIGTERM, signal.SIG_IGN); open(sys.argv[1], "w").write("half")'


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = Java(path=Path("/nowhere/java"), major=17, version="17.0.1")
    monkeypatch.setattr(class_archive, "find_java", lambda: java)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))


def ended(archive: ClassArchive, on_signal: str, state: StateDir, *, seconds: float) -> None:
    """Run a program that writes the archive like this, and stop it."""
    script = WRITES.format(on_signal=on_signal)
    command = Command(
        arguments=(sys.executable, "-c", script, str(archive.partial)),
        directory=Path("/"),
        archive=archive,
        stop_seconds=seconds - class_archive.MAKING_SECONDS,
    )
    process = Process("program", command, state)
    until(lambda: b"up" in process.log.read_bytes(), 60, "the program did not start")
    process.stop()


def test_a_run_that_ends_leaves_its_archive_to_the_next(state: StateDir) -> None:
    first = class_archive.archive("kafka", JARS)
    assert f"-XX:ArchiveClassesAtExit={first.partial}" in first.flags
    ended(first, WHEN_ASKED, state, seconds=60)
    second = class_archive.archive("kafka", JARS)
    assert second.partial is None
    assert f"-XX:SharedArchiveFile={second.path}" in second.flags
    assert second.path is not None
    assert second.path.read_text() == "classes"
    assert [path.name for path in second.path.parent.iterdir()] == [second.path.name]


def test_a_run_that_is_killed_leaves_nothing(state: StateDir) -> None:
    first = class_archive.archive("kafka", JARS)
    ended(first, NEVER, state, seconds=0.5)
    assert first.path is not None
    assert list(first.path.parent.iterdir()) == []
    assert class_archive.archive("kafka", JARS).partial is not None


def test_only_one_run_at_a_time_makes_it() -> None:
    first, second = (class_archive.archive("kafka", JARS) for _ in range(2))
    assert first.partial is not None
    assert second.flags == ()
    assert class_archive.existing("kafka", JARS).flags == ()


def test_archives_that_no_run_has_used_for_a_month_go_when_another_is_made() -> None:
    """A new release, Java or environment has other class paths, so archives would pile up."""
    used, unused = (made(program, JARS[:1]) for program in ("kafka", "registry"))
    for path in (used, unused):
        age(path, 31 * 24 * 3600)
    class_archive.archive("kafka", JARS[:1])

    new = made("kafka", JARS)
    assert sorted(new.parent.iterdir()) == sorted([used, new])


def made(program: str, class_path: list[Path]) -> Path:
    """Make an archive, and return its path."""
    archive = class_archive.archive(program, class_path)
    assert archive.path is not None
    assert archive.partial is not None
    archive.partial.write_text("classes")
    archive.settle()
    return archive.path


def age(path: Path, seconds: int) -> None:
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


def test_a_maker_that_was_killed_with_its_supervisor_is_replaced_at_once() -> None:
    maker = multiprocessing.get_context("fork").Process(target=_begin_and_be_killed)
    maker.start()
    maker.join()
    assert maker.exitcode == -signal.SIGKILL
    made = class_archive.archive("kafka", JARS)
    assert made.path is not None
    assert made.partial is not None
    assert [path.suffix for path in made.path.parent.iterdir()] == [".claim"]


def _begin_and_be_killed() -> None:
    archive = class_archive.archive("kafka", JARS)
    assert archive.partial is not None
    archive.partial.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_maker_that_goes_on_for_long_does_not_keep_others_from_making_one() -> None:
    first = class_archive.archive("kafka", JARS)
    assert first.path is not None
    (claim,) = first.path.parent.glob("*.claim")
    age(claim, 3601)
    second = class_archive.archive("kafka", JARS)
    assert second.partial is not None
    second.partial.write_text("classes")
    second.settle()
    second.give_up()
    assert class_archive.archive("kafka", JARS).partial is None


def test_an_archive_that_is_made_while_a_run_waits_for_its_turn_is_not_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = class_archive.archive("kafka", JARS)
    assert first.partial is not None
    first.partial.write_text("classes")
    begin = class_archive._claimed

    def later(path: Path) -> object:
        first.settle()
        return begin(path)

    monkeypatch.setattr(class_archive, "_claimed", later)
    second = class_archive.archive("kafka", JARS)
    assert second.partial is None
    assert second.flags


def test_another_class_path_or_java_has_another_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    path = class_archive.existing("kafka", JARS).path
    assert class_archive.existing("kafka", JARS[:1]).path != path
    java = Java(path=Path("/nowhere/java"), major=17, version="17.0.2")
    monkeypatch.setattr(class_archive, "find_java", lambda: java)
    assert class_archive.existing("kafka", JARS).path != path


def test_a_cache_that_cannot_be_written_makes_none(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("not a folder")
    assert class_archive.archive("kafka", JARS).flags == ()
