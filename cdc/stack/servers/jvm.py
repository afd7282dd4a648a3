"""Builds the command lines of the Java servers: small heaps, quick start."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cdc.stack.artifacts.class_archive import ClassArchive
from cdc.stack.artifacts.prerequisites import find_java

_FLAGS = (
    "-XX:+UseSerialGC",  # one collector thread suffices for small heaps on few cores
    "-XX:TieredStopAtLevel=1",  # compiles less, so starts faster
    "-XX:+ExitOnOutOfMemoryError",  # a restart by the supervisor beats a half-dead server
    "-XX:-UsePerfData",  # no file in /tmp per server
    "-Djava.net.preferIPv4Stack=true",
    "-Djava.awt.headless=true",
    "-Dfile.encoding=UTF-8",
)

_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %-5p %c{1} %m%n
"""


def java_command(
    heap: str,
    *,
    class_path: Sequence[Path],
    main: str,
    archive: ClassArchive,
    arguments: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Return the command line of a Java program; raises PREREQUISITE without a suitable Java.

    ``heap`` is the largest heap as Java writes it ("384m"); ``properties`` become ``-D`` options.
    """
    defined = [f"-D{key}={value}" for key, value in (properties or {}).items()]
    return (
        str(find_java().path),
        f"-Xmx{heap}",
        *_FLAGS,
        *archive.flags,
        *defined,
        "-cp",
        ":".join(str(entry) for entry in class_path),
        main,
        *arguments,
    )


def write_log4j(path: Path, levels: Mapping[str, str]) -> Path:
    """Write a log4j configuration that logs to stdout, the server's log file.

    ``levels`` maps loggers to levels; all others log from ``warn`` up. Returns the path.
    """
    lines = [_LOG4J]
    for index, (logger, level) in enumerate(levels.items()):
        lines.append(f"logger.l{index}.name = {logger}\nlogger.l{index}.level = {level}\n")
    path.write_text("".join(lines))
    return path
