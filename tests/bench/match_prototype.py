"""Ours beside the first prototype of the matcher, if its folder is at hand: `make bench-prototype LAB=DIR`.

The prototype is no part of this repository; `DIR` holds its `engine.py` and its files of rules. Both match
the same chunks in one process and in turns; of each chunk the best turn counts, in seconds of the thread.
The prototype chooses its literals by a sample of the very text that it is then measured on; ours are chosen
by a background that stands for all logs. The prototype tells bare tuples. With `--texts` the texts are files,
such as the prototype's own.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.match import chunks_of, rules_of, shipped_rules
from bench.match_methods import Method, eager, on_demand
from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.model import Rule
from midwatch.rules.prefilter.workloads import WORKLOADS

_BACKGROUND = 1_000_000
ITS_RULES = ("60", "120", "120cs", "300")
"""Files of the prototype's folder; `cs` are the 120 without the flag of either case, its fastest."""


def prototype(folder: Path) -> Any:
    """The prototype's engine, imported in place; nothing is written beside it."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder))
    try:
        return import_module("engine")
    finally:
        sys.path.remove(str(folder))


def methods(engine: Any, rules: Sequence[Rule], texts: Sequence[bytes]) -> dict[str, Method]:
    """Ours and the prototype's, each with captures on demand and with all of them."""
    rule_set = compile_rules(rules)
    known = [engine.Rule({"name": rule.name, "error_type": "", "pattern": rule.pattern}) for rule in rules]
    sample = b"\n".join(engine.background_of(known, text[: 2 * _BACKGROUND], _BACKGROUND) for text in texts)
    triggers, without = engine.pick_triggers(known, sample)
    if without:
        lazy = engine.Trigger(known, triggers, without, background=sample, capture="none")
        greedy = engine.Trigger(known, triggers, without, background=sample)
    else:
        lazy, greedy = engine.Midwatch(known, sample, lazy=True), engine.Midwatch(known, sample)
    return {
        "ours, on demand": on_demand(rule_set),
        "prototype, on demand": lambda chunk: len(lazy(chunk[:-1])),
        "ours, all captures": eager(rule_set),
        "prototype, all captures": lambda chunk: len(greedy(chunk[:-1])),
    }


def speeds(ways: dict[str, Method], text: bytes, turns: int) -> dict[str, float]:
    """Megabytes a second by method. Raises ValueError where they do not find equally many."""
    chunks = chunks_of(text, len(text))
    best: dict[tuple[str, int], float] = {}
    hits: dict[str, int] = {}
    for _ in range(turns):
        for name, method in ways.items():
            gc.collect()
            hits[name] = 0
            for number, chunk in enumerate(chunks):
                begin = time.thread_time()
                hits[name] += method(chunk)
                spent = time.thread_time() - begin
                best[name, number] = min(spent, best.get((name, number), spent))
    if len(set(hits.values())) > 1:
        raise ValueError(f"the hits differ: {hits}")
    whole = {name: sum(best[name, number] for number in range(len(chunks))) for name in ways}
    return {name: len(text) / 1e6 / seconds for name, seconds in whole.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if the prototype leads anywhere."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lab", type=Path, help="the prototype's folder")
    parser.add_argument("--megabytes", type=float, default=10.0, help="of each workload")
    parser.add_argument("--texts", type=Path, nargs="+", default=[], help="instead of our workloads")
    parser.add_argument("--turns", type=int, default=5)
    chosen = parser.parse_args(arguments)
    engine = prototype(chosen.lab)
    size = int(chosen.megabytes * 1e6)
    texts = {path.stem: _beginning(path, size) for path in chosen.texts}
    texts = texts or {name: make(size) for name, make in WORKLOADS.items()}
    behind = False
    print("| MB/s: ours / prototype | rules | on demand | all captures |\n|---|---|---|---|")
    sets = {f"its {name}": _rules_in(engine, chosen.lab, name) for name in ITS_RULES}
    sets |= {f"shipped {count}": rules_of(count) for count in (120, 300)}
    sets["all shipped"] = [rule for rule in shipped_rules() if rule.pattern.isascii()]
    for name, rules in sets.items():
        ways = methods(engine, rules, list(texts.values()))
        for workload, text in texts.items():
            told = speeds(ways, text, chosen.turns)
            cells: list[str] = []
            for kind in ("on demand", "all captures"):
                ours, other = told[f"ours, {kind}"], told[f"prototype, {kind}"]
                behind |= ours < other
                pair = f"{ours:,.0f} / {other:,.0f}"
                cells.append(pair if ours >= other else f"**{pair}**")
            print(f"| {workload} | {name} | {cells[0]} | {cells[1]} |", flush=True)
    return int(behind)


def _beginning(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        return file.read(size).rpartition(b"\n")[0] + b"\n"


def _rules_in(engine: Any, folder: Path, name: str) -> list[Rule]:
    read = engine.load(str(folder / f"rules{name}.yaml"))
    return [Rule(name=f"{number}_{each.name}", pattern=each.pat.decode()) for number, each in enumerate(read)]


if __name__ == "__main__":
    raise SystemExit(main())
