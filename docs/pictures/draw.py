# ruff: noqa: INP001 - a script, run by path
"""Draw the README's picture from recorded terminal output: ``make pictures``.

``terminal.txt`` holds lines that ``make demo`` printed, below the commands that print them. To take
a new picture, replace them with those of a new run and draw again.
"""

import io
import re
from pathlib import Path
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

HERE: Final = Path(__file__).resolve().parent
WIDTH: Final = 100  # columns
# Without the fonts that rich would fetch from the network.
FORMAT: Final = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def drawing(recorded: str) -> str:
    """Return the recorded lines as an SVG; commands are bold and verdicts green."""
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    for line in recorded.splitlines():
        text = Text(line, style="bold" if line.startswith("$ ") else "")
        text.highlight_regex(r"\bequal\b|\bin sync\b", "green")
        console.print(text)
    return console.export_svg(title="wal2lake", code_format=FORMAT, unique_id="wal2lake")


if __name__ == "__main__":
    picture = drawing((HERE / "terminal.txt").read_text())
    (HERE / "terminal.svg").write_text(picture)
