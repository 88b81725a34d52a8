"""How fast rules are matched, side by side with the other ways: `PYTHONPATH=tests python -m bench.match`.

Every method runs in one process and on the same chunks, in turns, so that a busy machine slows all alike; the
best turn counts, in seconds of this thread's work. Trust the ratios, not the megabytes.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which

from bench.match_methods import NAIVE, OURS, SLOW, Method, methods
from bench.match_report import write_report
from midwatch.rules.compiler import compile_rules
from midwatch.rules.loader import shipped_files
from midwatch.rules.matcher import lines_of
from midwatch.rules.model import Rule
from midwatch.rules.rule_reader import read_rules
from midwatch.rules.workloads import WORKLOADS

CHUNK = 1 << 16
PROMISE = {"noise": 300.0, "storm": 35.0, "progress": 12.0}
"""How many times faster than the loop of `re` at 300 rules."""


@dataclass(slots=True)
class Result:
    """One workload at one number of rules: megabytes a second by method, and where our time goes."""

    workload: str
    rules: int
    megabytes: float
    speeds: dict[str, float] = field(default_factory=dict)
    hits: dict[str, int] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)


def rules_of(count: int) -> list[Rule]:
    """So many rules: the shipped ones, evenly out of all packs, and made-up ones where they are too few."""
    shipped = [rule for rule in read_rules(shipped_files()) if rule.pattern.isascii() and _python_too(rule)]
    if len(shipped) >= count:
        return [shipped[i * len(shipped) // count] for i in range(count)]
    made_up = [
        Rule(name=f"made_up_{i}", pattern=rf"module{i:03}: (?P<what>\w+) failed with code (?P<code>-?\d+)")
        for i in range(count - len(shipped))
    ]
    return shipped + made_up


def _python_too(rule: Rule) -> bool:
    """Whether `re` reads the pattern alike; the few that it cannot read are left out for all methods."""
    return "\\z" not in rule.pattern and "[[:" not in rule.pattern and "(?i)" not in rule.pattern[1:]


def chunks_of(text: bytes, megabytes: float) -> list[bytes]:
    """Chunks of whole lines from the text's start."""
    chunks: list[bytes] = []
    start = 0
    limit = min(len(text), int(megabytes * 1e6))
    while start < limit:
        end = text.rfind(b"\n", start, start + CHUNK) + 1 or len(text)
        chunks.append(text[start:end])
        start = end
    return chunks


def seconds(method: Method, chunks: Sequence[bytes]) -> tuple[float, int]:
    """The thread's seconds for all chunks, and the hits."""
    begin = time.thread_time()
    hits = sum(method(chunk) for chunk in chunks)
    return time.thread_time() - begin, hits


def measure(workload: str, text: bytes, count: int, slow_megabytes: float, turns: int) -> Result:
    """All methods in turns."""
    rules = rules_of(count)
    ways = methods(rules, time.thread_time)
    result = Result(workload, count, len(text) / 1e6)
    chunks = {True: chunks_of(text, slow_megabytes), False: chunks_of(text, len(text))}
    for turn in range(turns):
        for name, method in ways.items():
            if name in SLOW and turn > 0:
                continue
            part = chunks[name in SLOW]
            spent, hits = seconds(method, part)
            speed = sum(map(len, part)) / 1e6 / max(spent, 1e-9)
            result.speeds[name] = max(speed, result.speeds.get(name, 0.0))
            result.hits[name] = hits
    for name in (NAIVE, OURS):
        result.hits[f"{name}, first part"] = seconds(ways[name], chunks[True])[1]
    result.parts = parts(rules, chunks[True])
    return result


def parts(rules: Sequence[Rule], chunks: Sequence[bytes]) -> dict[str, float]:
    """Microseconds a megabyte of the scan, of RE2 on the lines found, and of all: the rest is Python's."""
    rule_set = compile_rules(rules, clock=time.thread_time)
    machinery = rule_set.machinery
    megabytes = sum(map(len, chunks)) / 1e6
    texts = [chunk.lower() if machinery.in_lower_case else chunk for chunk in chunks]
    scanned = [machinery.find_triggers(text) for text in texts]
    lines = [
        line for chunk, offsets in zip(chunks, scanned, strict=True) for line in lines_with(chunk, offsets)
    ]

    def best(work: Method) -> float:
        return min(seconds(work, [b""])[0] for _ in range(3)) / megabytes * 1e6

    return {
        "scan": best(lambda _: sum(len(machinery.find_triggers(text)) for text in texts)),
        "re2": best(lambda _: sum(len(machinery.find_rules(line)) for line in lines)),
        "all": best(lambda _: sum(len(rule_set.match_chunk(chunk)) for chunk in chunks)),
    }


def lines_with(chunk: bytes, offsets: Sequence[int]) -> list[bytes]:
    """The lines in which the offsets lie, each once."""
    starts = {chunk.rfind(b"\n", 0, offset) + 1 for offset in offsets}
    return [lines_of(chunk[start : chunk.find(b"\n", start) + 1])[0] for start in sorted(starts)]


def processes(text: bytes, rules: Sequence[Rule]) -> dict[str, float]:
    """Megabytes a second of tools that count matching lines, where they are installed."""
    patterns = "\n".join(rule.pattern.replace("(?P<", "(?<") for rule in rules)
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        log, file = Path(folder, "log"), Path(folder, "patterns")
        log.write_bytes(text)
        file.write_text(patterns)
        for name, command in (
            ("ripgrep, counting", ["rg", "-c", "--no-unicode", "-f", str(file), str(log)]),
            ("grep -E, counting", ["grep", "-cE", "-f", str(file), str(log)]),
        ):
            if which(command[0]) is None:
                continue
            begin = time.perf_counter()
            done = subprocess.run(command, capture_output=True, check=False)
            if done.returncode in (0, 1):
                found[name] = len(text) / 1e6 / (time.perf_counter() - begin)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write bench/results/match.{json,md,svg}."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=20.0, help="of each workload (200 for a release)")
    parser.add_argument("--slow-megabytes", type=float, default=1.0, help="for the loops over all rules")
    parser.add_argument("--rules", type=int, nargs="+", default=[60, 120, 300])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("bench/results"))
    chosen = parser.parse_args(arguments)
    results = []
    for workload, make in WORKLOADS.items():
        text = make(int(chosen.megabytes * 1e6))
        for count in chosen.rules:
            result = measure(workload, text, count, chosen.slow_megabytes, chosen.turns)
            results.append(result)
            print(
                workload, count, {name: round(speed, 1) for name, speed in result.speeds.items()}, flush=True
            )
            first = {result.hits[f"{name}, first part"] for name in (NAIVE, OURS)}
            if len(first) != 1:
                print(f"the hits differ: {result.hits}", file=sys.stderr)
                return 1
        last = results[-1]
        last.speeds.update(processes(text[:4_000_000], rules_of(chosen.rules[-1])))
    machine = f"{platform.processor() or platform.machine()}, {_cpu()}, Python {platform.python_version()}"
    write_report(results, machine, chosen.output, PROMISE)
    return 0


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown CPU"
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown CPU"
    )


if __name__ == "__main__":
    raise SystemExit(main())
