"""Each step is shown once, and an outcome with the number that only its command has."""

from __future__ import annotations

from midwatch.agents.local.demo.shown_steps import ShownSteps
from midwatch.agents.query.timeline import Timed, Timeline, timeline
from midwatch.streams.records import Command, Decision, Incident, Outcome, Verdict

JOB = "local:ada/toy"
SETTLED = Timed(
    10, Incident(f"{JOB}#1", JOB, 1, "local:7:1", "settled", 1, Verdict("failed", "crash", "oom"))
)
DECIDED = Timed(
    20, Decision(JOB, 1, f"{JOB}#1", 1, "restart", "verdict", "it may pass", 20, True, command="c1")
)
COMMANDED = Timed(
    30, Command("c1", JOB, 1, 1, "restart", "local:7:1", f"{JOB}#1", 1, "it may pass", 30, 9, "me", "s", "b")
)
ACCEPTED = Timed(40, Outcome(JOB, "c1", 1, "restart", "accepted", "it is armed", "7", ""))


def read(*steps: Timed) -> Timeline:
    return timeline(JOB, list(steps))


def told(lines: list[str]) -> list[str]:
    return [line.partition(f"{JOB}: ")[2].partition(",")[0] for line in lines]


def test_an_outcome_that_is_read_before_its_command_waits_and_is_shown_once() -> None:
    shown = ShownSteps()
    assert told(shown.lines(read(SETTLED, ACCEPTED))) == ["incident → settled"]
    lines = shown.lines(read(SETTLED, DECIDED, COMMANDED, ACCEPTED))
    assert told(lines) == ["decided → restart", "command → restart", "restart → accepted"]
    assert "attempt 1 of" in lines[-1]
    assert shown.lines(read(SETTLED, DECIDED, COMMANDED, ACCEPTED)) == []


def test_a_step_that_comes_to_light_above_others_is_shown_and_none_again() -> None:
    shown = ShownSteps()
    assert told(shown.lines(read(SETTLED, COMMANDED))) == ["incident → settled", "command → restart"]
    assert told(shown.lines(read(SETTLED, DECIDED, COMMANDED))) == ["decided → restart"]


def test_at_the_end_nothing_waits() -> None:
    assert told(ShownSteps().lines(read(SETTLED, ACCEPTED), last=True))[-1] == "restart → accepted"
