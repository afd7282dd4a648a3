"""Draws stacks as a flame graph: the wider a frame, the more often it was seen. Pure."""

from collections.abc import Iterator, Mapping
from colorsys import hls_to_rgb
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from bench.flame.stacks import Stacks

WIDTH: Final = 1200.0
ROW: Final = 17
TOP: Final = 40
_CHARACTER: Final = 6.6  # pixels
MOST_ROWS: Final = 70  # deeper frames are left out
_LEAST: Final = 0.8  # pixels of a frame that is drawn
_SATURATION: Final = 0.65
_LIGHTNESS: Final = 0.75


@dataclass(slots=True)
class Frame:
    """A frame, with how often it and the frames in it were seen."""

    count: int = 0
    inside: dict[str, "Frame"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A frame as it is drawn; lengths are in pixels, and ``depth`` in rows from the top."""

    name: str
    share: float  # of all samples
    left: float
    width: float
    depth: int

    @property
    def label(self) -> str:
        """As much of the frame's name as the box has room for."""
        room = int((self.width - 4) / _CHARACTER)
        short = ".".join(self.name.rsplit(".", 2)[-2:])
        return "" if room < 3 else short if len(short) <= room else short[: room - 1] + "…"  # noqa: PLR2004

    @property
    def hue(self) -> int:
        """Return a hue in degrees, the same for all frames of one package."""
        package = ".".join(self.name.split(".")[:2])
        return int.from_bytes(blake2b(package.encode(), digest_size=2).digest()) % 360


def tree(stacks: Stacks) -> Frame:
    """Return the stacks as a tree."""
    root = Frame()
    for stack, count in stacks.items():
        at = root
        at.count += count
        for name in stack:
            at = at.inside.setdefault(name, Frame())
            at.count += count
    return root


def boxes(root: Frame) -> list[Box]:
    """Return the boxes of all frames that are wide enough to be seen."""
    return list(_boxes(root.inside, root.count or 1, 0.0, 0))


def draw(stacks: Stacks, title: str) -> str:
    """Return the graph as SVG, with the whole name of a frame as its title."""
    found = boxes(tree(stacks))
    parts = "\n".join(map(_svg, found))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height(found)}"'
        ' font-family="monospace" font-size="11">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n'
        f'<text x="8" y="22" font-size="15">{escape(title)}</text>\n{parts}\n</svg>\n'
    )


def height(found: list[Box]) -> int:
    """Return the height in pixels of a graph with these boxes."""
    return TOP + ROW * (max((box.depth for box in found), default=0) + 2)


def _boxes(frames: Mapping[str, Frame], whole: int, left: float, depth: int) -> Iterator[Box]:
    """Yield the boxes of frames side by side, and after each those inside it."""
    for name, frame in sorted(frames.items(), key=lambda item: -item[1].count):
        width = frame.count * WIDTH / whole
        if width >= _LEAST and depth < MOST_ROWS:
            yield Box(name=name, share=frame.count / whole, left=left, width=width, depth=depth)
            yield from _boxes(frame.inside, whole, left, depth + 1)
        left += width


def _svg(box: Box) -> str:
    top = TOP + box.depth * ROW
    fill = f"hsl({box.hue},{_SATURATION:.0%},{_LIGHTNESS:.0%})"
    return (
        f"<g><title>{escape(box.name)} ({box.share:.1%})</title>"
        f'<rect x="{box.left:.1f}" y="{top}" width="{max(box.width - 0.5, 0.3):.1f}"'
        f' height="{ROW - 1}" fill={quoteattr(fill)}/>'
        f'<text x="{box.left + 3:.1f}" y="{top + 12}">{escape(box.label)}</text></g>'
    )


def colour(box: Box) -> tuple[float, float, float]:
    """Return the box's colour as red, green and blue from 0 to 1."""
    return hls_to_rgb(box.hue / 360, _LIGHTNESS, _SATURATION)
