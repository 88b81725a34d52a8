"""A job on a stage, through detect and decide to the person: the words of its first description arrive."""

from __future__ import annotations

import html
from dataclasses import dataclass, field

import pytest

from midwatch.agents.messages.channels.slack import SlackBot
from midwatch.agents.messages.notice import Notice
from midwatch.agents.replay.pipeline import PipelineStep
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import Event, Finding, Forwarded, Incident
from sinks import http_sink
from unit.agents.detect.incident.scene import START_S, Scene
from unit.agents.messages.records import Partition


@dataclass
class Heard(Scene):
    """What detect and decide say of it reaches the messages, as decide forwards it."""

    partition: Partition = field(default_factory=Partition)
    notices: list[Notice] = field(default_factory=list)

    def say(self, event: Event) -> PipelineStep:
        done = super().say(event)
        told = [r for r in done.records if isinstance(r, Incident | Finding | Forwarded)]
        for record in told:
            if not isinstance(record, Incident) or record.state == "settled":
                self._take(record if isinstance(record, Forwarded) else Forwarded(record))
        for decision in done.decisions:
            self._take(decision)
        if not told:
            self._take(None)
        return done

    def _take(self, record: object | None) -> None:
        self.notices += self.partition.take(record, START_S + self.now)


async def _shown_to(person: str, notice: Notice) -> str:
    """What Slack is asked to show to this person."""
    with http_sink() as sink:
        await SlackBot("a-token", (person,), sink.url).send(notice)
    (posted,) = (request.json for request in sink.requests)
    assert posted["channel"] == person
    return html.unescape(posted["text"])


@pytest.mark.capability("S000-17")
async def test_a_loss_above_twice_its_moving_average_reaches_the_person_once() -> None:
    scene = Heard()
    for number in range(1, 21):
        scene.now += 1
        scene.progress(number, loss="1.90")
        scene.beat("n0")
    scene.progress(21, loss="5.20")
    for number in range(22, 60):
        scene.now += 1
        scene.progress(number, loss="5.30")
        scene.beat("n0")
    (notice,) = scene.notices
    assert notice.heading == "[midwatch] WARNING: local:ada/llm: Loss Spike"
    assert notice.what == (
        "Loss Spike (>2x moving average): the loss is 5.20 at step 21, 2.7x its moving average of 1.9"
    )
    assert notice.look == "midwatch why local:ada/llm"
    shown = await _shown_to("U0ADA", notice)
    assert f"*What*: {notice.what}" in shown
    assert "midwatch why local:ada/llm" in shown


@pytest.mark.capability("S000-19")
async def test_ten_minutes_without_a_step_reach_the_person_and_less_do_not() -> None:
    scene = Heard(limits=WatchLimits(training=600.0))
    scene.spec(limits={"training": 600.0})
    scene.train(range(1, 21))
    scene.beats(seconds=590)
    (on,) = scene.notices
    assert on.what.startswith("Monitoring: ACTIVE")
    assert "Training Stall (No progress for 10 min)" in on.why
    scene.beats(seconds=20)
    _, stall = scene.notices
    assert "Training Stall" in stall.heading
    assert stall.what.startswith("Training Stall: No progress for 10 min; attempt 1 (")
    assert "step 20" in stall.what
    assert stall.done.startswith("A restart (1 of ")
    shown = await _shown_to("U0ADA", stall)
    assert "Training Stall: No progress for 10 min" in shown
    assert "*Done*: A restart (1 of " in shown
