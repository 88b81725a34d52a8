"""The benchmark's results as JSON, as a page and as a plot."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import orjson

from bench.match_methods import OURS
from bench.match_tools import tool_versions

if TYPE_CHECKING:
    from bench.match import Result

_LIBRARIES = ("google-re2", "ahocorasick-rs", "hyperscan")


def write_report(results: Sequence[Result], machine: str, output: Path, promise: Mapping[str, float]) -> None:
    """Write match.json, match.md and match.svg into the folder."""
    output.mkdir(parents=True, exist_ok=True)
    versions = {
        name: version(name) for name in _LIBRARIES if find_spec(name.replace("-", "_")) or name[0] == "g"
    }
    versions |= tool_versions()
    when = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    data = {
        "date": when,
        "machine": machine,
        "versions": versions,
        "results": [asdict(result) | {"ratio": result.ratio, "kept": result.kept} for result in results],
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
    lines = [
        "# Matching: megabytes a second of one core",
        "",
        f"{when}; {machine};",
        f"{'; '.join(f'{name}: {number}' for name, number in versions.items())}.",
        f"{results[0].megabytes:.0f} MB of each workload, or what stands beside a method; chunks of 256 KiB;",
        "the best turn in seconds of the thread, all methods in turns in one process; programs in seconds of",
        "their own, less their start. Other work may have run beside it; trust the ratios. Written by",
        "`make bench-match`.",
        "",
        "![Matching at the largest number of rules](match.svg)",
        "",
        "## Against the promise: ours to a loop of `re`",
        "",
        "| workload | rules | ratio | promised | |",
        "|---|---|---|---|---|",
    ]
    for result in results:
        if result.ratio is not None:
            wanted = "" if result.kept is None else f"{promise[result.workload]:.0f} x"
            verdict = {None: "", True: "kept", False: "**missed**"}[result.kept]
            lines.append(
                f"| {result.workload} | {result.rules} | {result.ratio:,.0f} x | {wanted} | {verdict} |"
            )
    for workload in dict.fromkeys(result.workload for result in results):
        lines += _table([result for result in results if result.workload == workload])
    lines += _beside(results)
    lines += [
        "",
        "## Where our time goes",
        "",
        "Microseconds a megabyte: the scan for literals, RE2 on the lines that hold one, and all of",
        "`match_chunk`; the rest is Python's: slicing lines, calling RE2 for each, making the hits. Where",
        "most lines hold a literal (progress) every line is asked and nothing is scanned. What a native call",
        "for a whole chunk would bring and cost is in [native.md](native.md).",
        "",
        "| workload | rules | lines looked at | scan | RE2 | all |",
        "|---|---|---|---|---|---|",
    ]
    for result in results:
        told = (f"{result.parts[name]:,.0f}" for name in ("lines looked at", "scan", "re2", "all"))
        lines.append(f"| {result.workload} | {_rules(result)} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def _beside(results: Sequence[Result]) -> list[str]:
    """The whole worker beside that of another version, where one was measured."""
    known = [(result.workload, *result.beside) for result in results if result.beside is not None]
    if not known:
        return []
    return [
        "",
        f"## The whole worker beside that of {known[0][1]}",
        "",
        "Each version in a process of its own, in turns, each by the rules that it ships.",
        "",
        "| workload | before, MB/s | now, MB/s | ratio |",
        "|---|---|---|---|",
        *(
            f"| {workload} | {before:,.1f} | {now:,.1f} | {now / before:.1f} x |"
            for workload, _, before, now in known
        ),
    ]


def _table(results: Sequence[Result]) -> list[str]:
    names = list(dict.fromkeys(name for result in results for name in result.speeds))
    lines = [
        "",
        f"## {results[0].workload}",
        "",
        f"| MB/s | {' | '.join(f'{_rules(result)} rules' for result in results)} |",
        f"|---|{'---|' * len(results)}",
    ]
    for name in names:
        cells = [f"{result.speeds[name]:,.1f}" if name in result.speeds else "" for result in results]
        size = next((result.samples[name] for result in results if name in result.samples), None)
        told = f"{name} ({size:.1f} MB)" if size else name
        lines.append(f"| {f'**{told}**' if name == OURS else told} | {' | '.join(cells)} |")
    return lines


def _rules(result: Result) -> str:
    return f"all {result.rules} shipped" if result.shipped else str(result.rules)


def _plot(results: Sequence[Result]) -> str:
    """Bars on a logarithmic scale, one group for each workload at the largest number of rules."""
    most = max(result.rules for result in results if not result.shipped)
    shown = [result for result in results if result.rules == most and not result.shipped]
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
