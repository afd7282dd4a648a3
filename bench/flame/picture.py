"""Draws a flame graph as PNG, for what shows no SVG."""

from pathlib import Path
from typing import Final

from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from bench.flame.graph import ROW, TOP, WIDTH, Box, boxes, colour, height, tree
from bench.flame.stacks import Stacks

DPI: Final = 100
SCALE: Final = 1.5  # pixels of the picture per pixel of the graph
_POINTS: Final = 72 * SCALE / DPI  # of a pixel of the graph


def save(stacks: Stacks, title: str, path: Path) -> None:
    """Write the picture."""
    found = boxes(tree(stacks))
    high = height(found)
    canvas = Canvas(figsize=(WIDTH * SCALE / DPI, high * SCALE / DPI), dpi=DPI)
    axes = canvas.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(high, 0))
    axes.axis("off")
    axes.text(8, 22, title, fontsize=15 * _POINTS, family="monospace")
    for box in found:
        top = TOP + box.depth * ROW
        axes.add_patch(_rectangle(box, top))
        axes.text(box.left + 3, top + 12, box.label, fontsize=11 * _POINTS, family="monospace",
                  parse_math=False)  # fmt: skip
    canvas.savefig(path, metadata={"Software": None})


def _rectangle(box: Box, top: int) -> Rectangle:
    return Rectangle(
        (box.left, top), max(box.width - 0.5, 0.3), ROW - 1, facecolor=colour(box), linewidth=0
    )
