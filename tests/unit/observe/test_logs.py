"""Tests of log lines: their format, their level, and secrets in them."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from cdc.observe.logs import LEVEL_VARIABLE, configure, without_secrets


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object_with_its_facts() -> None:
    out = io.StringIO()
    configure(out)
    structlog.get_logger().info("table merged", table="shop.orders", rows=3)

    (line,) = lines(out)
    assert line.pop("timestamp")
    assert line == {"event": "table merged", "level": "info", "table": "shop.orders", "rows": 3}


def test_libraries_log_in_the_same_form() -> None:
    out = io.StringIO()
    configure(out)
    logging.getLogger("some.library").warning("slow %s", "disk")
    logging.getLogger("py4j").info("chatter")

    (line,) = lines(out)
    assert (line["event"], line["level"]) == ("slow disk", "warning")


def test_an_exception_stays_on_its_line_and_without_its_password() -> None:
    out = io.StringIO()
    configure(out)
    error = OSError("no route to postgresql://app:hunter2@db/app")
    structlog.get_logger().error("connect failed", exc_info=error)

    (line,) = lines(out)
    assert "OSError" in str(line["exception"])
    assert "hunter2" not in out.getvalue()


def test_secrets_are_hidden_by_name_and_in_texts() -> None:
    out = io.StringIO()
    configure(out)
    structlog.get_logger().info(
        "connect",
        url="postgresql://app:hunter2@db/app",
        password="hunter2",
        dsn="password=hunter2 x=1",
    )

    assert "hunter2" not in out.getvalue()
    assert lines(out)[0]["url"] == "postgresql://app:***@db/app"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("host=h password='a b' port=1", "host=h password=*** port=1"),
        ("PASSWORD = x", "PASSWORD = ***"),
        ("http://u:p@h:1/x and http://h:80/y@z", "http://u:***@h:1/x and http://h:80/y@z"),
        ("nothing to hide: 12:30@noon", "nothing to hide: 12:30@noon"),
    ],
)
def test_only_the_secrets_of_a_text_are_hidden(text: str, expected: str) -> None:
    assert without_secrets(text) == expected


def test_the_level_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL_VARIABLE, "warning")
    out = io.StringIO()
    configure(out)
    structlog.get_logger().info("hidden")
    structlog.get_logger().warning("shown")

    assert [line["event"] for line in lines(out)] == ["shown"]
