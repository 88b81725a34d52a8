"""The benchmark's results as JSON, as a page and as a plot."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import orjson

from bench.match_methods import NAIVE, OURS

if TYPE_CHECKING:
    from bench.match import Result

_LIBRARIES = ("google-re2", "ahocorasick-rs")


def write_report(results: Sequence[Result], machine: str, output: Path, promise: Mapping[str, float]) -> None:
    """Write match.json, match.md and match.svg into the folder."""
    output.mkdir(parents=True, exist_ok=True)
    versions = {name: version(name) for name in _LIBRARIES}
    when = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    data = {
        "date": when,
        "machine": machine,
        "versions": versions,
        "results": [asdict(result) for result in results],
    }
    (output / "match.json").write_bytes(orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
    (output / "match.md").write_text(_page(results, machine, versions, when, promise))
    (output / "match.svg").write_text(_plot(results))


def _page(
    results: Sequence[Result],
    machine: str,
    versions: Mapping[str, str],
    when: str,
    promise: Mapping[str, float],
) -> str:
    names = list(dict.fromkeys(name for result in results for name in result.speeds))
    lines = [
        "# Matching: megabytes a second of one core",
        "",
        f"{when}; {machine};",
        f"{', '.join(f'{name} {number}' for name, number in versions.items())};",
        f"{results[0].megabytes:.0f} MB of each workload, chunks of 64 KiB, the best turn, all methods in",
        "turns in one process. Other work ran beside it; trust the ratios. Written by `make bench-match`.",
        "",
        f"| workload | rules | {' | '.join(names)} | ours : `re` loop |",
        f"|---|---|{'---|' * (len(names) + 1)}",
    ]
    for result in results:
        cells = [f"{result.speeds[name]:,.1f}" if name in result.speeds else "" for name in names]
        ratio = result.speeds[OURS] / result.speeds[NAIVE]
        lines.append(f"| {result.workload} | {result.rules} | {' | '.join(cells)} | {ratio:,.0f} x |")
    lines += ["", "## Against the promise, at 300 rules", ""]
    for result in results:
        if result.rules == 300:
            ratio, wanted = result.speeds[OURS] / result.speeds[NAIVE], promise[result.workload]
            verdict = "kept" if ratio >= wanted else "MISSED"
            lines.append(f"- {result.workload}: {ratio:,.0f} x, promised {wanted:.0f} x: {verdict}")
    lines += [
        "",
        "## Where our time goes, and what one native call a chunk would bring",
        "",
        "Microseconds a megabyte: the scan for literals, RE2 on the lines that hold one, and all of",
        "`match_chunk`; the rest is Python's: slicing lines, calling RE2 for each, making the hits. A native",
        "call would save at most that rest and what the binding costs in each RE2 call; its price is a",
        "compiled extension for every platform.",
        "",
        "| workload | rules | scan | RE2 | all | the rest | MB/s without the rest |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        scan, search, whole = (result.parts[name] for name in ("scan", "re2", "all"))
        rest = max(0.0, whole - scan - search)
        row = (result.workload, result.rules, *(f"{part:,.0f}" for part in (scan, search, whole, rest)))
        lines.append(f"| {' | '.join(map(str, row))} | {1e6 / (scan + search):,.0f} |")
    return "\n".join(lines) + "\n"


def _plot(results: Sequence[Result]) -> str:
    """Bars on a logarithmic scale, one group for each workload at the largest number of rules."""
    most = max(result.rules for result in results)
    shown = [result for result in results if result.rules == most]
    bars: list[str] = []
    height = 20
    for result in shown:
        bars.append(
            f'<text x="8" y="{height}" font-weight="bold">{result.workload}, {most} rules, MB/s</text>'
        )
        height += 8
        for name, speed in result.speeds.items():
            width = 60 * len(f"{int(speed)}") + 6 * float(f"{speed:e}"[:3])
            colour = "#1f6feb" if name.startswith("midwatch") else "#9aa4b2"
            bars.append(f'<rect x="250" y="{height}" width="{width:.0f}" height="12" fill="{colour}"/>')
            bars.append(f'<text x="8" y="{height + 10}">{escape(name)}</text>')
            bars.append(f'<text x="{256 + width:.0f}" y="{height + 10}">{speed:,.1f}</text>')
            height += 17
        height += 22
    style = 'font-family="sans-serif" font-size="11"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="{height}" {style}>\n'
        + "\n".join(bars)
        + "\n</svg>\n"
    )
