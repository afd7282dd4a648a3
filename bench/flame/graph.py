"""Draws stacks as a flame graph: the wider a frame, the more often it was seen. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from bench.flame.stacks import Stacks

WIDTH: Final = 1200.0
ROW: Final = 17
TOP: Final = 40
_CHARACTER: Final = 6.6  # pixels
_LEAST: Final = 0.8  # pixels of a frame that is drawn


@dataclass(slots=True)
class Frame:
    """A frame, with how often it and the frames in it were seen."""

    count: int = 0
    inside: dict[str, "Frame"] = field(default_factory=dict)


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


def draw(stacks: Stacks, title: str) -> str:
    """Return the graph as SVG, with the whole name of a frame as its title."""
    root = tree(stacks)
    height = TOP + ROW * (_depth(root) + 1)
    boxes = "\n".join(_boxes(root.inside, root.count or 1, 0.0, WIDTH, 0))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height}"'
        ' font-family="monospace" font-size="11">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n'
        f'<text x="8" y="22" font-size="15">{escape(title)}</text>\n{boxes}\n</svg>\n'
    )


def _depth(frame: Frame) -> int:
    return 1 + max(map(_depth, frame.inside.values())) if frame.inside else 0


def _boxes(
    frames: Mapping[str, Frame], whole: int, left: float, width: float, depth: int
) -> Iterator[str]:
    """Yield the boxes of frames side by side, and above each those inside it."""
    total = sum(frame.count for frame in frames.values())
    share = width / max(total, 1) if depth == 0 else WIDTH / whole
    for name, frame in sorted(frames.items(), key=lambda item: -item[1].count):
        wide = frame.count * share
        if wide >= _LEAST:
            yield _box(name, frame.count / whole, left, wide, TOP + depth * ROW)
            yield from _boxes(frame.inside, whole, left, wide, depth + 1)
        left += wide


def _box(name: str, share: float, left: float, wide: float, top: int) -> str:
    room = int((wide - 4) / _CHARACTER)
    short = ".".join(name.rsplit(".", 2)[-2:])
    text = "" if room < 3 else escape(short if len(short) <= room else short[: room - 1] + "…")  # noqa: PLR2004
    return (
        f"<g><title>{escape(name)} ({share:.1%})</title>"
        f'<rect x="{left:.1f}" y="{top}" width="{max(wide - 0.5, 0.3):.1f}" height="{ROW - 1}"'
        f" fill={quoteattr(_colour(name))}/>"
        f'<text x="{left + 3:.1f}" y="{top + 12}">{text}</text></g>'
    )


def _colour(name: str) -> str:
    """Return a colour that is the same for all frames of one package."""
    package = ".".join(name.split(".")[:2])
    hue = int.from_bytes(blake2b(package.encode(), digest_size=2).digest()) % 360
    return f"hsl({hue},65%,75%)"
