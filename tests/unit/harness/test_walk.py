"""A command's output is compared with the one that a document shows."""

import pytest

from tests.operations.walk import Step, missing

STEP = Step(
    command="wal2lake sync",
    code=0,
    output=(" t │ 1 │", "read 3,000 rows, 2 min 5 s", "equal; source at 0/19BBB10"),
)
PRINTED = "waiting\n t  │ 20 ┃\nread 12 rows, 9.5 s\nequal; source at 1/A\nin the end\n"


def test_numbers_and_lines_in_between_are_not_compared() -> None:
    assert missing(STEP, PRINTED) == []


@pytest.mark.parametrize(
    ("old", "new", "first"),
    [
        ("rows", "bytes", STEP.output[1]),
        ("equal", "not equal", STEP.output[2]),
        ("read 12 rows, 9.5 s\n", "", STEP.output[1]),
    ],
)
def test_another_word_or_a_missing_line_is_reported(old: str, new: str, first: str) -> None:
    assert missing(STEP, PRINTED.replace(old, new))[0] == first


def test_the_order_is_compared() -> None:
    lines = PRINTED.splitlines()
    lines[1], lines[2] = lines[2], lines[1]
    assert missing(STEP, "\n".join(lines))
