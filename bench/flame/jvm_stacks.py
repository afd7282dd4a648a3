"""Samples the stacks of a JVM by its flight recorder."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.flame.stacks import Stacks

DEEP: Final = {"spark.driver.extraJavaOptions": "-XX:FlightRecorderOptions=stackdepth=512"}
"""Setting of a session: 64 frames, the default, leave out where Spark's stacks begin."""
EVENT: Final = "jdk.ExecutionSample"  # of threads that run Java code; those that wait have none
_MILLISECONDS: Final = 10
_FRAMES: Final = "\t"
_LAMBDA: Final = re.compile(r"\$\$Lambda[^\t\n]*(?=\.\w+$|\.\w+\t)", re.MULTILINE)
_FOLD: Final = """
StringBuilder text = new StringBuilder();
java.nio.file.Path path = java.nio.file.Paths.get(file, new String[0]);
jdk.jfr.consumer.RecordingFile events = new jdk.jfr.consumer.RecordingFile(path);
while (events.hasMoreEvents()) {
    jdk.jfr.consumer.RecordedStackTrace trace = events.readEvent().getStackTrace();
    if (trace == null) continue;
    java.util.List frames = trace.getFrames();
    for (int n = frames.size() - 1; n >= 0; n--) {
        jdk.jfr.consumer.RecordedMethod method =
            ((jdk.jfr.consumer.RecordedFrame) frames.get(n)).getMethod();
        text.append(method.getType().getName()).append(".").append(method.getName());
        text.append(n == 0 ? "\\n" : "\\t");
    }
}
events.close();
return text.toString();
"""
"""Java: the stacks of a recording as lines. Asking for each frame from Python takes minutes, and
the text form of an event has five frames."""


@contextmanager
def of_the_jvm(jvm: Any, file: Path) -> Iterator[Stacks]:  # noqa: ANN401 - py4j has no types
    """Record the JVM's running threads during the block."""
    stacks: Stacks = Counter()
    recording = jvm.jdk.jfr.Recording()
    recording.enable(EVENT).withPeriod(jvm.java.time.Duration.ofMillis(_MILLISECONDS))
    recording.start()
    try:
        yield stacks
    finally:
        recording.stop()
        recording.dump(jvm.java.io.File(str(file)).toPath())
        recording.close()
    stacks.update(folded(_lines(jvm, file)))


def folded(text: str) -> Stacks:
    """Count the stacks of lines, whose frames stand between tabs with the outermost one first.

    Lambdas of one class get one name: theirs are numbered.
    """
    lines = _LAMBDA.sub("$lambda", text).splitlines()
    return Counter(tuple(line.split(_FRAMES)) for line in lines if line)


def _lines(jvm: Any, file: Path) -> str:  # noqa: ANN401
    """Run the Java above in the JVM, by the compiler that Spark compiles its own code with."""
    script = jvm.org.codehaus.janino.ScriptEvaluator()
    string = jvm.java.lang.Class.forName("java.lang.String")
    script.setReturnType(string)
    error = jvm.java.lang.Class.forName("java.io.IOException")
    script.setThrownExceptions(_array(jvm, "java.lang.Class", error))
    script.setParameters(_array(jvm, "java.lang.String", "file"),
                         _array(jvm, "java.lang.Class", string))  # fmt: skip
    script.cook(_FOLD)
    return str(script.evaluate(_array(jvm, "java.lang.Object", str(file))))


def _array(jvm: Any, kind: str, only: Any) -> Any:  # noqa: ANN401
    array = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName(kind), 1)
    array[0] = only
    return array
