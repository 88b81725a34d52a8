"""The reliability diagram of `bench/results/diagnosis.md`: chance across, what labels say up. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from bench.chance_report import Bin, ChanceTest, bins

_SIDE, _LEFT, _TOP, _GAP = 240, 46, 34, 90


def plot(tests: Sequence[ChanceTest]) -> str:
    """One diagram for each test, side by side. A dot is a bin: its number of ends, and the 95 % interval."""
    shapes = [
        shape
        for number, test in enumerate(tests)
        for shape in _diagram(test, _LEFT + number * (_SIDE + _GAP))
    ]
    width, style = _LEFT + len(tests) * (_SIDE + _GAP), 'font-family="sans-serif" font-size="11"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_TOP + _SIDE + 44}" {style}>'
    return "\n".join([head, *shapes, "</svg>", ""])


def _diagram(test: ChanceTest, left: float) -> Iterator[str]:
    bottom = _TOP + _SIDE
    yield f'<text x="{left}" y="{_TOP - 14}">{escape(test.name)}: Brier {test.brier:.3f}</text>'
    yield f'<rect x="{left}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}" fill="none" stroke="#8c959f"/>'
    yield f'<path d="M{left} {bottom}L{left + _SIDE} {_TOP}" stroke="#8c959f" stroke-dasharray="4"/>'
    yield f'<text x="{left}" y="{bottom + 32}">chance: 0 to 1; up: share judged worth a restart</text>'
    for tick in (0.0, 0.5, 1.0):
        yield f'<text x="{left + tick * _SIDE - 8:.0f}" y="{bottom + 16}">{tick:g}</text>'
        yield f'<text x="{left - 22}" y="{bottom - tick * _SIDE + 4:.0f}">{tick:g}</text>'
    for each in bins(test.scored):
        yield from _dot(each, left, bottom)


def _dot(each: Bin, left: float, bottom: float) -> Iterator[str]:
    x, y = left + each.mean * _SIDE, bottom - each.seen.hits / each.seen.of * _SIDE
    low, high = (bottom - bound * _SIDE for bound in each.seen.interval() or (0.0, 1.0))
    yield f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="#1f6feb"/>'
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#1f6feb"/>'
    yield f'<text x="{x + 7:.1f}" y="{y - 5:.1f}">{each.seen.of}</text>'
