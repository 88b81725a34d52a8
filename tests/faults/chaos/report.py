"""What `make chaos` counted, as JSON, as a page, and as complaints."""

from __future__ import annotations

import datetime
import os
import platform
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from faults.chaos.parts import PARTS, wanted

_LIBRARIES = ("faust-streaming", "aiokafka", "kafka-python", "redis")
_NUMBERS = ("events", "lines", "starts", "lost", "twice", "disordered", "overlaps", "repeats", "strays")

Whole = dict[str, Any]


def load(folder: Path) -> Whole:
    """What earlier runs found; empty without any."""
    file = folder / "chaos.json"
    loaded: Whole = orjson.loads(file.read_bytes()) if file.exists() else {"cases": []}
    return loaded


def merge(before: Whole, counted: Sequence[dict[str, Any]], seed: int, rounds: int) -> Whole:
    """Cases that were played again replace what they were."""
    about = {
        "date": datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="minutes"),
        "machine": machine(),
        "versions": {name: version(name) for name in _LIBRARIES},
        "run_seed": seed,
        "rounds": rounds,
    }
    cases = {(case["part"], case["case"]): case for case in before["cases"]}
    cases |= {(case["part"], case["case"]): case | about for case in counted}
    return {"cases": [cases[name] for name in sorted(cases)]}


def machine() -> str:
    """Processor, cores and Python."""
    return f"{platform.machine()}, {os.cpu_count()} shared cores, Python {platform.python_version()}"


def hits_of(whole: Whole, part: str) -> Counter[str]:
    """How often each failpoint and fault of a part was hit."""
    hits: Counter[str] = Counter(dict.fromkeys(wanted(part), 0) if part in PARTS else {})
    for case in whole["cases"]:
        if case["part"] == part:
            hits.update(case["hits"])
    return hits


def complaints(whole: Whole, parts: Sequence[str]) -> list[str]:
    """Cases of these parts that did not hold, and what was never hit."""
    found = [
        f"{case['part']}: {case['case']} (seed {case['seed']}, SEED={case['run_seed']}): "
        f"{case.get('why', '')}"
        for case in whole["cases"]
        if case["part"] in parts and not case["held"]
    ]
    return found + never_hit(whole, parts)


def never_hit(whole: Whole, parts: Sequence[str]) -> list[str]:
    """The failpoints and faults of these parts that no case has hit."""
    hits = {part: hits_of(whole, part) for part in parts}
    return [
        f"{part}: {name} was never hit" for part in parts for name in wanted(part) if not hits[part][name]
    ]


def hits_table(whole: Whole, parts: Sequence[str] = ()) -> str:
    """One line for each failpoint and fault of these parts and of all that were played."""
    parts = list(dict.fromkeys([*parts, *(case["part"] for case in whole["cases"])]))
    rows = [
        f"{part:10} {name:28} {n:6}" for part in parts for name, n in sorted(hits_of(whole, part).items())
    ]
    return "\n".join(["how often each was hit:", *rows])


def write(whole: Whole, folder: Path) -> None:
    """chaos.json and chaos.md."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "chaos.json").write_bytes(orjson.dumps(whole, option=orjson.OPT_INDENT_2) + b"\n")
    (folder / "chaos.md").write_text(_page(whole))


def _page(whole: Whole) -> str:
    cases = whole["cases"]
    about = sorted({f"{case['machine']}" for case in cases})
    versions = sorted({", ".join(f"{n} {v}" for n, v in case["versions"].items()) for case in cases})
    lines = [
        "# The chain under fire",
        "",
        f"{'; '.join(about)}; {'; '.join(versions)}. Other work ran beside it (the load is in the table).",
        "Written by `make chaos`, which fails when a case does not hold or a failpoint is never hit. The",
        "judge is outside: what a producer sent, numbered lines, the training's own ledger.",
        "",
        "- **injected**: how often the faults of the case were really hit",
        "- **lost**, **twice**, **disordered**: records or lines that are not in the final state exactly",
        "  once, or in another order; **overlaps**: two starts of a job alive at once; **strays**: orders",
        "  that came too late, twice or for an older start, and had no effect",
        "- **repeats**: the same record or line again, with the same id, without an effect",
        "",
    ]
    for part in dict.fromkeys(case["part"] for case in cases):
        mine = [case for case in cases if case["part"] == part]
        shown = [name for name in _NUMBERS if any(name in case["found"] for case in mine)]
        lines += [
            f"## {part}",
            "",
            f"| case | injected | {' | '.join(shown)} | held | seconds | load | SEED, day |",
            f"|---|---|{'---|' * (len(shown) + 4)}",
        ]
        for case in mine:
            numbers = " | ".join(f"{case['found'].get(name, 0):,.0f}" for name in shown)
            held = "yes" if case["held"] else f"**NO**: {case.get('why', '')}"
            about_run = f"{case['run_seed']}, {case['date'][:10]}"
            row = (case["case"], sum(case["hits"].values()), numbers, held, f"{case['seconds']:,.0f}")
            lines.append(f"| {' | '.join(map(str, row))} | {case['load']} | {about_run} |")
        missed = [name for name, number in sorted(hits_of(whole, part).items()) if not number]
        lines += ["", f"Hits of {part}: {_hits(whole, part)}.", ""]
        lines += [f"**Not played yet: {', '.join(missed)}.**", ""] if missed else []
    if unplayed := [part for part in PARTS if part not in {case["part"] for case in cases}]:
        lines += [f"**Parts not played yet: {', '.join(unplayed)}.**", ""]
    return "\n".join(lines)


def _hits(whole: Whole, part: str) -> str:
    hits = sorted(hits_of(whole, part).items())
    return ", ".join(f"{name} {number}" for name, number in hits if number)
