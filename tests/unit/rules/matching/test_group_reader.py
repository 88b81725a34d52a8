"""A reader of a few groups reads what the captures of a hit say, in lines of known forms and of new ones."""

from __future__ import annotations

import pytest

from midwatch.rules.loader import load_bundle
from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.prefilter.workloads import WORKLOADS

MEANINGS = ("step", "total_steps", "loss", "grad_norm", "epoch", "batch", "count", "rank")


@pytest.mark.parametrize("workload", ["progress", "storm"])
def test_a_reader_reads_what_the_captures_say(workload: str) -> None:
    rules = compile_rules(load_bundle("default").rules, scan=False)
    found = rules.match_chunk(WORKLOADS[workload](150_000) + "loss: 1.5 \u2713 step: 3\n".encode())
    texts: dict[str, list[bytes]] = {}
    for hit in found:
        texts.setdefault(hit.rule.name, []).append(hit.text)
    first = {hit.rule.name: hit for hit in found}
    captures = [{**dict.fromkeys(MEANINGS, ""), **hit.captures()} for hit in found]
    by_rule: dict[str, list[tuple[str, ...]]] = {}
    for hit, said in zip(found, captures, strict=True):
        by_rule.setdefault(hit.rule.name, []).append(tuple(said[meaning] for meaning in MEANINGS))
    for name, lines in texts.items():
        assert first[name].compiled.reader(MEANINGS)(lines) == by_rule[name]
