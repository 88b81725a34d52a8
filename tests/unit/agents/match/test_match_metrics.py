"""What match exports of a chunk, and the captures that a rule exports."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from midwatch.agents.match.metrics import MatchMetrics
from midwatch.agents.rulesets.bundles import CompiledBundle
from midwatch.rules.errors import RuleErrors
from midwatch.rules.files.rule_reader import read_rules
from midwatch.rules.files.writer import rules_text
from midwatch.rules.matching.compiler import compile_rules, content_hash
from midwatch.streams.records import Chunk, Hit, Hits, Origin, Phase, Progress, Section
from midwatch.streams.settings.schema import TelemetrySettings
from midwatch.streams.telemetry import names
from midwatch.streams.telemetry.meter import NO_LABELS, Labels, Meter, Read
from midwatch.streams.telemetry.names import Metric
from unit.upgrade.filled import filled

FILE = rb"""version: 1
rules:
  - name: gpu_memory
    pattern: 'GPU memory: (?P<gib>[0-9.,]+|nan|full)'
    role: context
    export: [gib]
"""
RULES = read_rules({"mine.yaml": FILE})
BUNDLE = CompiledBundle(compile_rules(RULES, scan=False), "hash")


class Kept(Meter):
    """What was counted."""

    def __init__(self) -> None:
        self.counted: dict[tuple[str, str], float] = {}
        self.recorded: list[float] = []
        self.reads: dict[str, Read] = {}

    def add(self, metric: Metric, amount: float = 1, labels: Labels = NO_LABELS) -> None:
        place = metric.name, str(labels.get(names.RULE, ""))
        self.counted[place] = self.counted.get(place, 0) + amount

    def record(self, metric: Metric, value: float, labels: Labels = NO_LABELS) -> None:  # noqa: ARG002  # the interface's
        self.recorded.append(value)

    def watch(self, metric: Metric, read: Read) -> None:
        self.reads[metric.name] = read


def chunk(job: str = "local:me/llm", age_s: float = 2.0) -> Chunk:
    section = replace(filled(Section), lines=10, context=3, read_at=time.time() - age_s)
    return Chunk(replace(filled(Origin), job=job), (section,), b"")


def hits(*texts: str) -> Hits:
    made = tuple(replace(filled(Hit), rule="gpu_memory", captures={"gib": text}) for text in texts)
    return replace(filled(Hits), hits=made, counts=())


def progress(phase: Phase, lines: int, losses: tuple[str, ...] = ()) -> Hits:
    """Progress lines that were read 1, 2, 3 … seconds after 1970."""
    numbers = tuple(range(1, lines + 1))
    columns = Progress(
        "path", "g", "rule", phase, numbers, numbers, numbers, tuple(map(float, numbers)), losses
    )
    return replace(filled(Hits), progress=(columns,))


def test_lines_are_counted_once_and_their_age_is_from_the_read_to_now() -> None:
    kept = Kept()
    MatchMetrics(TelemetrySettings(), kept).matched(chunk(), None, BUNDLE)
    assert kept.counted == {(names.LINES.name, ""): 7}
    assert kept.recorded[0] == pytest.approx(2.0, abs=1.0)


@pytest.mark.capability("X-46")
def test_the_latest_number_of_an_exported_capture_is_a_gauge_of_its_job() -> None:
    kept = Kept()
    metrics = MatchMetrics(TelemetrySettings(), kept)
    metrics.matched(chunk(), hits("71.2", "1,024.5", "full", "nan"), BUNDLE)
    labels = {names.RUN: "local:me/llm", names.RULE: "gpu_memory", names.CAPTURE: "gib"}
    assert list(kept.reads[names.CAPTURED.name]()) == [(1024.5, labels)]


def test_captures_end_with_their_job_and_jobs_are_bounded() -> None:
    kept = Kept()
    metrics = MatchMetrics(TelemetrySettings(runs=2), kept)
    for number in range(5):
        metrics.matched(chunk(f"local:me/{number}"), hits("1"), BUNDLE)
    shown = [labels[names.RUN] for _, labels in kept.reads[names.CAPTURED.name]()]
    assert shown == ["local:me/3", "local:me/4"]


@pytest.mark.parametrize(("later_s", "captures"), [(30.0, 1), (30.1, 0)])
def test_a_job_s_captures_end_so_long_after_its_last_line(later_s: float, captures: int) -> None:
    kept, now = Kept(), [100.0]
    metrics = MatchMetrics(TelemetrySettings(forget=30), kept, lambda: now[0])
    metrics.matched(chunk(), hits("1"), BUNDLE)
    now[0] += later_s
    assert len(list(kept.reads[names.CAPTURED.name]())) == captures


def test_a_rule_exports_only_what_it_captures() -> None:
    with pytest.raises(RuleErrors, match="captures no 'size' to export"):
        read_rules({"mine.yaml": FILE.replace(b"[gib]", b"[size]")})
    with pytest.raises(RuleErrors, match="is of progress and exports nothing"):
        read_rules({"mine.yaml": FILE.replace(b"context", b"progress")})


def test_the_key_is_written_and_read_again_and_rules_without_it_keep_their_hash() -> None:
    assert replace(read_rules({"f": rules_text(RULES).encode()})[0], location=RULES[0].location) == RULES[0]
    without = tuple(replace(rule, export=()) for rule in RULES)
    assert content_hash(without) != content_hash(RULES)


@pytest.mark.capability("S000-17")
def test_the_printed_loss_is_exported_with_its_spike_and_a_nan_leaves_the_number_before_it() -> None:
    kept = Kept()
    metrics = MatchMetrics(TelemetrySettings(), kept)
    for losses in (("2.0", "64.5", "nan"), ("nan",)):
        metrics.matched(chunk(), progress("training", len(losses), losses), BUNDLE)
    assert list(kept.reads[names.PRINTED_LOSS.name]()) == [(64.5, {names.RUN: "local:me/llm"})]
    assert list(kept.reads[names.CHECKPOINT_AT.name]()) == []


def test_a_checkpoint_is_marked_with_the_time_of_its_latest_line() -> None:
    kept = Kept()
    MatchMetrics(TelemetrySettings(), kept).matched(chunk(), progress("checkpoint", 7), BUNDLE)
    assert list(kept.reads[names.CHECKPOINT_AT.name]()) == [(7.0, {names.RUN: "local:me/llm"})]
