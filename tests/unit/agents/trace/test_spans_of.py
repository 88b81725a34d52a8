"""One incident as a trace: which spans, whose children, and from when to when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.agents.trace.spans_of import Traced, traced
from midwatch.streams.records import Command, Decision, Finding, Forwarded, Incident, Outcome, codec
from midwatch.streams.telemetry import names as n
from midwatch.streams.telemetry import trace_ids as ids
from unit.upgrade.filled import filled

JOB = "night:ada/llm"
NAME = f"{JOB}#1.1"
SETTLED = 60_000
COMMAND = "c" * 32
EMPTY = filled(Incident)
INCIDENT = replace(
    EMPTY,
    id=NAME,
    job=JOB,
    attempt=1,
    incarnation="slurm:417:0",
    state="settled",
    revision=1,
    verdict=replace(EMPTY.verdict, state="failed", error_type="cuda_oom", rule="oom", rank=3, step=120),
    evidence=(replace(EMPTY.evidence[0], line=replace(EMPTY.evidence[0].line, time=50.0)),),
    opened_ms=50_300,
    line_ms=50_100,
    ended_ms=55_000,
    settled_ms=SETTLED,
)
DECISION = replace(filled(Decision), job=JOB, incident=NAME, at_ms=SETTLED + 20, command=COMMAND)
ORDER = replace(filled(Command), job=JOB, incident=NAME, id=COMMAND)
OUTCOME = replace(filled(Outcome), job=JOB, incident=NAME, command=COMMAND)
ACCEPTED, DONE, REFUSED = (replace(OUTCOME, state=state) for state in ("accepted", "done", "refused"))


def of(record: object, at_ms: int, ends: dict[int, int] | None = None) -> Traced:
    found = traced(record, at_ms, ends or {})
    assert found is not None
    return found


@pytest.mark.capability("X-51")
def test_the_whole_way_is_one_tree_with_the_records_own_times() -> None:
    ends: dict[int, int] = {}
    spans = {}
    for record, at_ms in (
        (INCIDENT, SETTLED + 10),
        (DECISION, SETTLED + 30),
        (ORDER, SETTLED + 35),
        (Forwarded(ACCEPTED), SETTLED + 100),
        (Forwarded(DONE), SETTLED + 900),
    ):
        for span in of(record, at_ms, ends).spans:
            spans[span.kind.name] = span
            ends[span.span] = span.end_ms
    times = {name: (span.start_ms, span.end_ms) for name, span in spans.items()}
    assert times == {
        "incident": (50_000, SETTLED),
        "line": (50_000, 50_100),
        "hit": (50_100, 50_300),
        "settle": (55_000, SETTLED),
        "decision": (SETTLED + 20, SETTLED + 30),
        "command": (SETTLED + 35, SETTLED + 35),
        "answer": (SETTLED + 35, SETTLED + 100),
        "outcome": (SETTLED + 100, SETTLED + 900),
    }
    by_id = {span.span: name for name, span in spans.items()}
    assert all(by_id.get(span.parent, "") == span.kind.parent for span in spans.values())
    assert {span.trace for span in spans.values()} == {ids.trace_id(NAME)}
    about = spans["incident"].attributes
    assert (about[n.SLURM_JOB], about[n.SLURM_CLUSTER], about[n.RANK], about[n.ITERATION]) == (
        "417",
        "night",
        3,
        120,
    )


@pytest.mark.parametrize("record", [INCIDENT, DECISION, ORDER, ACCEPTED, DONE])
def test_the_header_of_a_record_names_the_span_that_it_gives(record: object) -> None:
    answered = {ids.span_id(NAME, "answer", COMMAND): 1} if record is DONE else {}
    header = ids.traceparent_of(codec.encode(record))
    assert header is not None
    _, trace, span, flags = header.decode().split("-")
    given = [f"{each.span:016x}" for each in of(record, SETTLED, answered).spans]
    assert (trace, flags) == (f"{ids.trace_id(NAME):032x}", "01")
    assert span in given or record is ACCEPTED  # the span of an accepted command is not over yet


def test_a_later_verdict_is_a_revision_and_the_incident_is_told_once() -> None:
    again = of(replace(INCIDENT, revision=2), SETTLED + 50)
    assert [span.kind for span in again.spans] == [n.REVISION_SPAN]


def test_a_command_that_is_refused_has_an_answer_and_no_outcome() -> None:
    (span,) = of(REFUSED, SETTLED).spans
    assert span.kind is n.ANSWER_SPAN
    assert span.failed
    again = of(REFUSED, SETTLED + 50, {span.span: span.end_ms})
    assert again.spans == ()


def test_an_outcome_whose_acceptance_was_never_told_still_has_both() -> None:
    assert [span.kind for span in of(DONE, SETTLED).spans] == [n.ANSWER_SPAN, n.EFFECT_SPAN]


def test_a_clock_that_runs_ahead_gives_no_span_that_ends_before_it_begins() -> None:
    hit = INCIDENT.evidence[0]
    ahead = replace(INCIDENT, evidence=(replace(hit, line=replace(hit.line, time=10_000.0)),))
    assert all(span.start_ms <= span.end_ms for span in of(ahead, SETTLED).spans)


def test_text_of_a_job_obeys_no_terminal() -> None:
    hit = INCIDENT.evidence[0]
    line = replace(hit.line, text="\x1b[2J", path="/logs/\x1b]0;x\x07")
    incident = replace(INCIDENT, evidence=(replace(hit, line=line),))
    for span in of(incident, SETTLED).spans:
        assert all(str(value).isprintable() for value in span.attributes.values())


def test_what_is_no_incident_gives_no_span() -> None:
    assert traced(replace(INCIDENT, state="suspected"), SETTLED, {}) is None
    for copy in (INCIDENT, filled(Finding)):
        assert traced(Forwarded(copy), SETTLED, {}) is None, "`incidents` holds it too"
    finding = of(replace(filled(Finding), job=JOB), SETTLED)
    assert finding.spans == ()
    assert finding.event is not None
    assert finding.event.name == n.FINDING_EVENT
