"""What a job may print to fool its watch, through match, detect, decide and what a person then reads."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace

import pytest
from rich.console import Console

from bad_input.case import AT_MS, AT_S, JOB, OTHER, Case
from bad_input.logs_cases import ORIGIN, SECTION, TEXT
from midwatch.agents import activity
from midwatch.agents.cli.printing import timeline_text
from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.match.chunk_hits import match
from midwatch.agents.match.record_size import encoded
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.query.timeline import Timed, timeline
from midwatch.agents.replay.pipeline import JobWatch, PipelineStep, step
from midwatch.agents.rulesets.bundles import watched_rules
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.lines.normalise import normalise
from midwatch.streams.records import (
    Chunk,
    Event,
    Finding,
    Heartbeat,
    Incident,
    Outcome,
    SchedulerFact,
    SpecEvent,
    codec,
)

RULES = watched_rules(("default",), scan=False)
BOOK = Rulebook({"verdict": load_policy("verdict")}, lambda command: command, acting=True)

OOM = "torch.OutOfMemoryError: CUDA out of memory."
LINES = (
    Case("a line that imitates our own", "", "", "nothing: no rule speaks of it",
         f"2026-11-20T03:00:00.000Z {JOB}: decided → restart, because ada says so"),
    Case("a record of ours as a line", "", "", "nothing: text is no record",
         '{"record":"scheduler","v":1,"job":"local:ada/llm","incarnation":"local:1:1","ended":true}'),
    Case("another job's name and error", "", "", "suspects its own job alone", f"[{OTHER}] {OOM}"),
    Case("a forged rank", "", "", "the rank is kept as claimed", f"[rank0]: {OOM}"),
    Case("a forged srun label", "", "", "suspects its own job alone", f"7: {OOM}"),
    Case("terminal escapes", "", "", "taken out by the shipper; spelled out where they stay",
         "\x1b[2J\x1b]0;owned\x07torch.OutOfMemoryError: CUDA\x1b[1A out of memory."),
    Case("rich's own markup", "", "", "printed as it stands", f"[bold red]{OOM}[/]"),
    Case("a carriage return over a line", "", "", "two lines", f"all is well\r{OOM}"),
    Case("text that turns the reading direction", "", "", "spelled out", f"{OOM} \u202eyromem"),
    Case("a shell command", "", "", "printed as it stands", "RuntimeError: $(touch /tmp/owned); `id`"),
    Case("the word of a scheduler", "", "", "suspects: text alone ends nothing",
         "slurmstepd: error: *** JOB 44 ON n0 CANCELLED AT 2026-11-20T03:00:00 DUE TO NODE FAILURE ***"),
)  # fmt: skip


@dataclass
class Stage:
    """Jobs whose lines go all the way, in order, each armed and with a beat behind its lines."""

    watches: dict[str, JobWatch] = field(default_factory=dict)
    told: list[Timed] = field(default_factory=list)
    commands: int = 0
    now_ms: int = AT_MS
    offset: int = 0

    def start(self, job: str) -> None:
        self.take(job, SpecEvent(job, "spec", "verdict", True, 1, "", incarnation="local:1:1"))
        self.take(job, Heartbeat(replace(ORIGIN, job=job), 1, AT_S, 1.0, 5.0, True, 0))

    def take(self, job: str, event: Event) -> PipelineStep:
        self.now_ms += 100
        done = step(
            self.watches.get(job, JobWatch()), job, event, self.now_ms, limits=WatchLimits(), book=BOOK
        )
        self.watches[job] = done.watch
        self.commands += len(done.commands)
        self.told += [Timed(self.now_ms, event)] if isinstance(event, SchedulerFact | Outcome) else []
        self.told += [Timed(self.now_ms, r) for r in (*done.records, *done.decisions, *done.commands)]
        return done

    def print(self, job: str, raw: bytes) -> None:
        lines = normalise(raw, self.offset, 1)
        section = replace(
            SECTION,
            size=len(lines.text),
            lines=lines.lines,
            anchors=lines.anchors,
            end=self.offset + len(raw),
        )
        self.offset += len(raw)
        chunk = Chunk(replace(ORIGIN, job=job), (section,), lines.text)
        hits = match(chunk, RULES.rules, RULES.hash, self.now_ms)
        if hits is not None:
            self.take(job, codec.decode(encoded(hits)))

    def incidents(self, job: str) -> list[Incident]:
        return [t.record for t in self.told if isinstance(t.record, Incident) and t.record.job == job]

    def shown(self, job: str) -> str:
        """What `why` and the activity lines print of the job."""
        out = io.StringIO()
        console = Console(file=out, highlight=False, markup=False, emoji=False, soft_wrap=True)
        mine = [t for t in self.told if getattr(t.record, "job", job) == job]
        for text in timeline_text(timeline(job, mine), self.now_ms):
            console.print(text)
        for timed in mine:
            out.write((activity.line(timed.record, timed.at_ms) or "") + "\n")
        return out.getvalue()


@pytest.mark.parametrize("case", LINES, ids=[case.name for case in LINES])
def test_a_line_ends_no_job_touches_no_other_and_harms_no_terminal(case: Case) -> None:
    stage = Stage()
    stage.start(JOB)
    stage.start(OTHER)
    assert isinstance(case.value, str)
    stage.print(JOB, case.value.encode() + b"\n")
    assert stage.commands == 0
    assert stage.incidents(OTHER) == []
    assert {incident.state for incident in stage.incidents(JOB)} <= {"suspected"}
    ended = SchedulerFact(JOB, "local:1:1", "1", "running", "failed", True, exit_code=1)
    stage.take(JOB, replace(ended, reason=case.value))
    stage.take(JOB, Heartbeat(ORIGIN, 2, AT_S, 6.0, 5.0, True, 0, final=True))
    shown = stage.shown(JOB)
    assert all(line.isprintable() for line in shown.splitlines())
    assert not any(line.startswith("2026-11-20T03") for line in shown.splitlines())
    assert stage.incidents(OTHER) == []


def test_ten_thousand_false_alarms_cost_their_own_job_a_suspicion_and_no_other_anything() -> None:
    stage = Stage()
    for job in (JOB, OTHER):
        stage.start(job)
    for _ in range(10):
        stage.print(JOB, b"torch.OutOfMemoryError: CUDA out of memory.\n" * 1000)
    assert [incident.state for incident in stage.incidents(JOB)] == ["suspected"]
    assert stage.commands == 0
    stage.print(OTHER, b"ncclSystemError: remote process exited or there was a network error\n")
    stage.take(OTHER, SchedulerFact(OTHER, "local:1:1", "1", "running", "failed", True, exit_code=1))
    stage.take(OTHER, Heartbeat(replace(ORIGIN, job=OTHER), 2, AT_S, 6.0, 5.0, True, 0, final=True))
    settled = [incident for incident in stage.incidents(OTHER) if incident.state == "settled"]
    assert [incident.verdict.family for incident in settled] == ["comms"]
    assert not [t for t in stage.told if isinstance(t.record, Finding) and t.record.kind == "poisoned"]


def test_a_job_of_a_foreign_shipper_is_no_stall_and_why_says_that_none_can_be_found() -> None:
    stage = Stage()
    origin = replace(ORIGIN, shipper="foreign:vector", incarnation="", nodes=0)
    chunk = Chunk(origin, (SECTION,), TEXT)
    hits = match(chunk, RULES.rules, RULES.hash, AT_MS)
    assert hits is not None
    stage.take(JOB, hits)
    stage.now_ms += 3_600_000
    fact = SchedulerFact(JOB, "slurm:7:0", "7", "pending", "running", False)
    assert stage.take(JOB, fact).commands == ()
    assert "vector ships its lines and sends no heartbeats: midwatch cannot see a stall" in stage.shown(JOB)
    assert "two_alive" not in stage.shown(JOB)
    stage.take(JOB, replace(fact, new="failed", ended=True, exit_code=1))
    stage.now_ms += 600_000
    stage.take(JOB, Heartbeat(replace(ORIGIN, incarnation="slurm:7:0"), 1, AT_S, 1.0, 5.0, True, 0))
    settled = next(incident for incident in stage.incidents(JOB) if incident.state == "settled")
    assert (settled.attempt, settled.incarnation) == (1, "slurm:7:0")
    assert settled.verdict.error_type == "oom"
