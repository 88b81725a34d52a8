"""How fast rules are matched, side by side with the other ways: `PYTHONPATH=tests python -m bench.match`.

Every method runs in one process and on the same chunks, in turns, so that a busy machine slows all alike; the
best turn counts, in seconds of this thread's work. Trust the ratios, not the megabytes. Exits with 1 if a
promise is not kept or the methods do not agree on the hits.
"""

from __future__ import annotations

import argparse
import gc
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.match_beside import beside, version_of
from bench.match_methods import EXACT, NAIVE, OURS, OURS_WITH_BLOCKS, SLOW, Method, methods, with_blocks
from bench.match_report import write_report
from bench.match_tools import SAMPLES, measure_tools
from midwatch.agents.match.chunk_hits import match
from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.reading.log_files import chunks as shipped_chunks
from midwatch.rules.loader import load_bundle
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.matching.matcher import lines_of
from midwatch.rules.model import Rule
from midwatch.rules.prefilter.workloads import WORKLOADS

CHUNK = 1 << 18
"""Bytes at which a shipper cuts a chunk."""
PROMISE = {"noise": 300.0, "storm": 35.0, "progress": 12.0}
"""How many times faster than the loop of `re` at 300 rules."""
PROMISED_AT = 300
SHIPPED = "default"
WORKER = "midwatch, the whole worker: times, tracebacks, records"
WORKER_MEGABYTES = 20.0


@dataclass(slots=True)
class Result:
    """One workload at one number of rules: megabytes a second by method, and where our time goes.

    `samples` are the megabytes that a method was given where that was less than `megabytes`.
    """

    workload: str
    rules: int
    megabytes: float
    shipped: bool = False
    speeds: dict[str, float] = field(default_factory=dict)
    samples: dict[str, float] = field(default_factory=dict)
    hits: dict[str, int] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)
    beside: tuple[str, float, float] | None = None
    """Another version, the speed of its whole worker, and that of this one in the same turns."""

    @property
    def ratio(self) -> float | None:
        """Ours to the loop of `re`, where both were measured."""
        return self.speeds[OURS] / self.speeds[NAIVE] if NAIVE in self.speeds else None

    @property
    def kept(self) -> bool | None:
        """Whether the promise holds; None where nothing is promised."""
        if self.shipped or self.rules != PROMISED_AT or self.ratio is None:
            return None
        return self.ratio >= PROMISE[self.workload]


def shipped_rules() -> list[Rule]:
    """What a worker watches by itself, but for the rules over blocks, which no other way knows."""
    return [rule for rule in load_bundle(SHIPPED).rules if not rule.block]


def rules_of(count: int) -> list[Rule]:
    """So many rules: the shipped ones, evenly out of all packs, and made-up ones where they are too few."""
    shipped = [rule for rule in shipped_rules() if rule.pattern.isascii() and _python_too(rule)]
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
    gc.collect()
    begin = time.thread_time()
    hits = sum(method(chunk) for chunk in chunks)
    return time.thread_time() - begin, hits


def measure(workload: str, text: bytes, rules: Sequence[Rule], chosen: argparse.Namespace) -> Result:
    """All methods in turns, then the tools."""
    result = Result(workload, len(rules), len(text) / 1e6)
    rule_set = compile_rules(rules)
    ways = methods(rules, rule_set)
    whole, part = chunks_of(text, len(text)), chunks_of(text, chosen.slow_megabytes)
    for turn in range(chosen.turns):
        for name, method in ways.items():
            if name in SLOW and turn > 1:
                continue
            chunks = part if name in SLOW else whole
            spent, hits = seconds(method, chunks)
            size = sum(map(len, chunks)) / 1e6
            result.speeds[name] = max(size / max(spent, 1e-9), result.speeds.get(name, 0.0))
            result.hits[name] = hits
            if name in SLOW:
                result.samples[name] = size
    for name in EXACT & ways.keys():
        result.hits[f"{name}, first part"] = seconds(ways[name], part)[1]
    result.parts = parts(rule_set, part)
    if not chosen.no_tools:
        for name, tool in measure_tools(text, rules, SAMPLES).items():
            result.speeds[name], result.samples[name] = tool.speed, tool.megabytes
    return result


def measure_shipped(workload: str, text: bytes, turns: int) -> Result:
    """The shipped rules as a worker watches them; `re` cannot read all of them, so its loop is not there."""
    rules = shipped_rules()
    rule_set = compile_rules(load_bundle(SHIPPED).rules)
    result = Result(workload, len(rules), len(text) / 1e6, shipped=True)
    chunks = chunks_of(text, len(text))
    ways = methods(rules, rule_set, readable=False) | {OURS_WITH_BLOCKS: with_blocks(rule_set)}
    for _ in range(turns):
        for name, method in ways.items():
            spent, result.hits[name] = seconds(method, chunks)
            result.speeds[name] = max(len(text) / 1e6 / max(spent, 1e-9), result.speeds.get(name, 0.0))
    result.parts = parts(rule_set, chunks[: max(1, len(chunks) // 20)])
    sample = chunks[: max(1, int(WORKER_MEGABYTES * 1e6) // CHUNK)]
    result.samples[WORKER] = sum(map(len, sample)) / 1e6
    result.speeds[WORKER] = max(as_a_worker(rule_set, sample) for _ in range(turns))
    return result


def as_a_worker(rule_set: RuleSet, texts: Sequence[bytes]) -> float:
    """Megabytes a second of all that a match worker makes of chunks, but for Kafka and the codec."""
    shipped = [each for text in texts for each in shipped_chunks("bench", LogFile("rank.log", text, 0.0), 0)]
    gc.collect()
    begin = time.thread_time()
    for chunk in shipped:
        match(chunk, rule_set, "", 0)
    return sum(map(len, texts)) / 1e6 / (time.thread_time() - begin)


def parts(rule_set: RuleSet, chunks: Sequence[bytes]) -> dict[str, float]:
    """Microseconds a megabyte of the scan, of RE2 on the lines found, and of all: the rest is Python's."""
    machinery = rule_set.machinery
    megabytes = sum(map(len, chunks)) / 1e6
    scanned = [machinery.find_triggers(chunk) for chunk in chunks]
    lines = [
        line for chunk, offsets in zip(chunks, scanned, strict=True) for line in lines_with(chunk, offsets)
    ]

    def best(work: Method) -> float:
        return min(seconds(work, [b""])[0] for _ in range(3)) / megabytes * 1e6

    return {
        "scan": best(lambda _: sum(len(machinery.find_triggers(chunk)) for chunk in chunks)),
        "re2": best(lambda _: sum(len(machinery.find_rules(line)) for line in lines)),
        "all": best(lambda _: sum(len(rule_set.match_chunk(chunk)) for chunk in chunks)),
        "lines looked at": len(lines) / megabytes,
    }


def lines_with(chunk: bytes, offsets: Sequence[int]) -> list[bytes]:
    """The lines in which the offsets lie, each once."""
    starts = {chunk.rfind(b"\n", 0, offset) + 1 for offset in offsets}
    return [lines_of(chunk[start : chunk.find(b"\n", start) + 1])[0] for start in sorted(starts)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write bench/results/match.{json,md,svg}."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=20.0, help="of each workload (200 for a release)")
    parser.add_argument("--slow-megabytes", type=float, default=1.0, help="for the loops over all rules")
    parser.add_argument("--rules", type=int, nargs="+", default=[60, 120, PROMISED_AT])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--no-tools", action="store_true", help="leave out what runs as a process of its own")
    parser.add_argument("--beside", type=Path, help="another tree of the sources: its worker, too")
    parser.add_argument("--output", type=Path, default=Path("bench/results"))
    chosen = parser.parse_args(arguments)
    results: list[Result] = []
    agreed = True
    for workload, make in WORKLOADS.items():
        text = make(int(chosen.megabytes * 1e6))
        measured = [measure(workload, text, rules_of(count), chosen) for count in chosen.rules]
        measured.append(measure_shipped(workload, text, chosen.turns))
        if chosen.beside is not None:
            measured[-1].beside = _beside(chosen.beside.resolve(), workload, chosen.turns)
        for result in measured:
            told = {name: round(speed, 1) for name, speed in result.speeds.items()}
            print(workload, result.rules, told, flush=True)
            first = {hits for name, hits in result.hits.items() if name.endswith("first part")}
            if len(first) > 1:
                print(f"the hits differ: {result.hits}", file=sys.stderr)
                agreed = False
        results += measured
    machine = f"{platform.processor() or platform.machine()}, {_cpu()}, Python {platform.python_version()}"
    write_report(results, machine, chosen.output, PROMISE)
    for result in results:
        if result.kept is False:
            print(f"promise not kept: {result.workload}, {result.ratio:.0f} times", file=sys.stderr)
    return 0 if agreed and all(result.kept is not False for result in results) else 1


def _beside(other: Path, workload: str, turns: int) -> tuple[str, float, float]:
    now, before = beside(other, workload, WORKER_MEGABYTES, turns)
    print(workload, f"the whole worker {now:.1f}, that of {version_of(other)} {before:.1f}", flush=True)
    return version_of(other), before, now


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
