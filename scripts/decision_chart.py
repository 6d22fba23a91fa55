"""A decision chart as SVG: questions from top to bottom, and what to take beside each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, ROW, TOP = 760, 104, 8
QUESTION, ANSWER = (8, 270), (352, 400)  # left edge and width of the two columns
HEIGHT = 76


@dataclass(frozen=True)
class Step:
    """A question, and what to take if it is answered by yes: a name, why, and what was measured."""

    question: tuple[str, ...]
    take: str
    why: str
    measured: str


def chart(steps: Sequence[Step], otherwise: Step) -> str:
    """The chart; text takes the page's own colour, so that it is readable in the dark as well."""
    parts = []
    for number, step in enumerate((*steps, otherwise)):
        y = TOP + ROW * number
        middle = y + HEIGHT / 2
        last = step is otherwise
        parts.append(_question(step.question, y))
        parts.append(_answer(step, y))
        parts.append(_arrow(QUESTION[0] + QUESTION[1], middle, ANSWER[0], middle))
        if not last:
            parts.append(_word("yes", (QUESTION[0] + QUESTION[1] + ANSWER[0]) / 2 - 3, middle - 7))
            centre = QUESTION[0] + QUESTION[1] / 2
            parts.append(_arrow(centre, y + HEIGHT, centre, y + ROW))
            parts.append(_word("no", centre + 16, y + HEIGHT + 18))
    height = TOP + ROW * (len(steps) + 1) - (ROW - HEIGHT) + TOP
    head = (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' role="img" aria-label="Which mechanism: questions, answers and measured errors"'
        ' font-family="sans-serif" fill="currentColor">'
    )
    tip = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8"'
        ' markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
    )
    return "\n".join([head, tip, *parts, "</svg>"])


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


def _question(lines: tuple[str, ...], y: float) -> str:
    x, width = QUESTION
    first = y + HEIGHT / 2 + 5 - 10 * (len(lines) - 1)
    said = [
        _text(x + width / 2, first + 20 * i, line, 15, 'text-anchor="middle"')
        for i, line in enumerate(lines)
    ]
    return _box(x, y, width, "#0072B2", 22) + "".join(said)


def _answer(step: Step, y: float) -> str:
    x, width = ANSWER
    mono = 'font-family="monospace" font-weight="bold"'
    return (
        _box(x, y, width, "#009E73", 4)
        + _text(x + 12, y + 22, step.take, 14, mono)
        + _text(x + 12, y + 43, step.why, 13)
        + _text(x + 12, y + 64, step.measured, 13, 'font-weight="bold"')
    )
