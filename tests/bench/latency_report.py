"""The latencies as JSON, as a page and as a plot."""

from __future__ import annotations

import datetime
import math
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from xml.sax.saxutils import escape

import orjson

from bench.executor_cost import RUNNING, Cost

_LIBRARIES = ("faust-streaming", "aiokafka", "kafka-python", "redis")
PROMISES = {"line → incident": 1.0, "settled → command": 2.0} | {
    f"{worker} killed → watching again": 6.0 for worker in ("match", "detect", "decide")
}
"""Seconds at p99; of a killed worker the session timeout, in which its jobs may be unwatched."""


@dataclass(frozen=True)
class Sample:
    """One measurement in seconds, and the machine's load when it was made."""

    what: str
    seconds: float
    load: float


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def write_report(
    samples: Sequence[Sample],
    changed: Sequence[str],
    output: Path,
    *,
    note: str = "",
    costs: Sequence[Cost] = (),
) -> None:
    """Write latency.json, latency.md and latency.svg into the folder; `note` says what is odd about a run."""
    output.mkdir(parents=True, exist_ok=True)
    about = {
        "date": datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="minutes"),
        "machine": f"{platform.machine()}, {os.cpu_count()} shared cores, Python {platform.python_version()}",
        "versions": {name: version(name) for name in _LIBRARIES},
        "settings": list(changed),
        "note": note,
    }
    data = about | {"samples": [asdict(sample) for sample in samples]}
    if costs:
        data["looking"] = [asdict(cost) for cost in costs]
    (output / "latency.json").write_bytes(orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
    groups = {name: [s for s in samples if s.what == name] for name in dict.fromkeys(s.what for s in samples)}
    (output / "latency.md").write_text(_page(groups, about, costs))
    (output / "latency.svg").write_text(_plot(groups))


def _page(groups: dict[str, list[Sample]], about: Mapping[str, object], costs: Sequence[Cost]) -> str:
    versions = about["versions"]
    assert isinstance(versions, dict)
    changed = about["settings"] or "none, all are the defaults"
    lines = [
        "# How soon",
        "",
        f"{about['date']}; {about['machine']}; {', '.join(f'{n} {v}' for n, v in versions.items())};",
        f"settings changed: {changed}. Kafka, Redis, the jobs and other work ran on the same cores: the load",
        "(of the last minute, median over the samples) is in the table. Written by `make bench-latency`.",
        "",
        "A line's time is taken before the job writes it; an arrival is when a consumer beside the watch has",
        "the record. *Watching again* means that something which happened after the SIGKILL has come through",
        "the killed kind of process: a step through match and through the shipper, a cause line through",
        "detect (one is written each 0.7 s), an incident through decide, the end of a process through the",
        "executor.",
        "",
        *([str(about["note"]), ""] if about["note"] else []),
        "![p50 and p99](latency.svg)",
        "",
        "| what | n | p50, s | p99, s | most, s | load | promise (p99) |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, samples in groups.items():
        values = [sample.seconds for sample in samples]
        promised, p99 = PROMISES.get(name), quantile(values, 0.99)
        verdict = "" if promised is None else f"{promised:g} s: {'kept' if p99 <= promised else 'MISSED'}"
        numbers = " | ".join(f"{number:.3f}" for number in (quantile(values, 0.5), p99, max(values)))
        load = quantile([sample.load for sample in samples], 0.5)
        lines.append(f"| {name} | {len(values)} | {numbers} | {load:.1f} | {verdict} |")
    return "\n".join((*lines, *_looking(costs))) + "\n"


def _looking(costs: Sequence[Cost]) -> Iterator[str]:
    """What an executor needs that does nothing but look."""
    if not costs:
        return
    yield from (
        "",
        "## What looking costs",
        "",
        f"An executor whose scheduler lists that many jobs. {RUNNING} of them run and are its own; the rest",
        "has ended. CPU is that of the executor and of the tools that it calls.",
        "",
        "| scheduler | jobs listed | CPU, % of one core | calls a second | over, s | load |",
        "|---|---|---|---|---|---|",
    )
    for cost in costs:
        numbers = f"{cost.cpu * 100:.1f} | {cost.calls:.2f} | {cost.seconds:.0f} | {cost.load:.1f}"
        yield f"| {cost.scheduler} | {cost.listed} | {numbers} |"


def _plot(groups: dict[str, list[Sample]]) -> str:
    """Every sample as a dot; p50 and p99 as bars; seconds on one scale."""
    most = max(sample.seconds for samples in groups.values() for sample in samples)
    scale, left, height = 430 / most, 220, 24
    shapes = [f'<text x="{left}" y="14">seconds; bars: p50 and p99, dots: every sample</text>']
    for name, samples in groups.items():
        values = [sample.seconds for sample in samples]
        shapes.append(f'<text x="8" y="{height + 13}">{escape(name)}</text>')
        for share, colour in ((0.99, "#c8d7f0"), (0.5, "#1f6feb")):
            width = quantile(values, share) * scale
            shapes.append(
                f'<rect x="{left}" y="{height + 3}" width="{width:.1f}" height="12" fill="{colour}"/>'
            )
        shapes += [
            f'<circle cx="{left + value * scale:.1f}" cy="{height + 9}" r="1.6" fill="#24292f"/>'
            for value in values
        ]
        shapes.append(f'<text x="{left + 440}" y="{height + 13}">{quantile(values, 0.99):.2f}</text>')
        height += 22
    style = 'font-family="sans-serif" font-size="11"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="{height + 10}" {style}>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )
