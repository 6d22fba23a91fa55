"""A decision chart as SVG: questions from top to bottom, and what to take beside each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

HEIGHT, GAP, EDGE = 76, 28, 8


@dataclass(frozen=True)
class Layout:
    """Where boxes stand: the two columns (left edge and width), one beside or below the other."""

    width: int
    question: tuple[int, int]
    answer: tuple[int, int]
    below: bool


WIDE = Layout(760, (8, 270), (352, 400), below=False)
NARROW = Layout(380, (8, 290), (52, 320), below=True)


@dataclass(frozen=True)
class Step:
    """A question, and what to take if it is answered by yes: a name, why, and what was measured."""

    question: tuple[str, ...]
    take: str
    why: str
    measured: str


def chart(steps: Sequence[Step], otherwise: Step) -> str:
    """The chart twice, for a desk and for a phone; the page's style sheet shows one of them.

    Text takes the page's own colour, so that it is readable in the dark as well.
    """
    every = (*steps, otherwise)
    return "\n".join(
        _drawn(every, layout, name) for layout, name in ((WIDE, "wide"), (NARROW, "narrow"))
    )


def _drawn(steps: Sequence[Step], layout: Layout, name: str) -> str:
    parts, y = [], EDGE
    x, width = layout.question
    for step in steps:
        last = step is steps[-1]
        down = y + HEIGHT + (GAP if layout.below else -HEIGHT)
        parts += [_question(step.question, x, y, width), _answer(step, *layout.answer, down)]
        after = max(y, down) + HEIGHT + GAP
        if layout.below:
            turn = layout.answer[0] + 60
            parts.append(_arrow(turn, y + HEIGHT, turn, down))
            parts.append("" if last else _word("yes", turn + 20, y + HEIGHT + 18))
            no = x + 20
        else:
            middle = y + HEIGHT / 2
            parts.append(_arrow(x + width, middle, layout.answer[0], middle))
            between = (x + width + layout.answer[0]) / 2 - 3
            parts.append("" if last else _word("yes", between, middle - 7))
            no = x + width // 2
        if not last:
            parts.append(_arrow(no, y + HEIGHT, no, after))
            parts.append(_word("no", no + 14, y + HEIGHT + 18))
        y = after
    tip = (
        f'<defs><marker id="tip-{name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8"'
        ' markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
    )
    head = (
        f'<svg class="chart {name}" xmlns="http://www.w3.org/2000/svg"'
        f' viewBox="0 0 {layout.width} {y - GAP + EDGE}" role="img"'
        ' aria-label="Which mechanism: questions, answers and measured errors"'
        ' font-family="sans-serif" fill="currentColor">'
    )
    return "\n".join([head, tip, *parts, "</svg>"]).replace("url(#tip)", f"url(#tip-{name})")


def _box(x: float, y: float, width: float, colour: str, radius: int) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{HEIGHT}" rx="{radius}" fill="{colour}"'
        f' fill-opacity="0.14" stroke="{colour}" stroke-width="1.5"/>'
    )


def _text(x: float, y: float, words: str, size: int, more: str = "") -> str:
    return f'<text x="{x}" y="{y:g}" font-size="{size}" {more}>{escape(words)}</text>'


def _word(words: str, x: float, y: float) -> str:
    return _text(x, y, words, 13, 'text-anchor="middle" font-style="italic"')


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    return (
        f'<line x1="{x}" y1="{y:g}" x2="{to_x}" y2="{to_y:g}" stroke="currentColor"'
        ' stroke-width="1.4" marker-end="url(#tip)"/>'
    )


def _question(lines: tuple[str, ...], x: float, y: float, width: float) -> str:
    first = y + HEIGHT / 2 + 5 - 10 * (len(lines) - 1)
    said = [
        _text(x + width / 2, first + 20 * i, line, 15, 'text-anchor="middle"')
        for i, line in enumerate(lines)
    ]
    return _box(x, y, width, "#0072B2", 22) + "".join(said)


def _answer(step: Step, x: float, width: float, y: float) -> str:
    small = width < 400
    mono = 'font-family="monospace" font-weight="bold"'
    return (
        _box(x, y, width, "#009E73", 4)
        + _text(x + 10, y + 22, step.take, 12 if small else 14, mono)
        + _text(x + 10, y + 43, step.why, 12 if small else 13)
        + _text(x + 10, y + 64, step.measured, 11 if small else 13, 'font-weight="bold"')
    )
