"""Other rules come into force in the middle of a job: what detect knows of the job stays as it was."""

from __future__ import annotations

import pytest

from midwatch.agents.rulesets.content import bundle
from midwatch.streams.records import Event, Finding, codec
from midwatch.streams.worker.fold import PARTITION
from midwatch.streams.worker.tables.batch import OWN
from unit.agents.detect.incident.scene import JOB, START_S, Scene
from unit.agents.replay.recording.stream import LIMITS, Stream


class _Streamed(Scene):
    """A scene whose events go into a stream."""

    stream: Stream

    def say(self, event: Event):  # type: ignore[no-untyped-def]  # the scene's own
        self.stream.say(event, int((START_S + self.now) * 1000), JOB)
        return super().say(event)


def _trained(*, swapped: bool) -> Stream:
    scene = _Streamed(nodes=("n0",), limits=LIMITS)
    scene.stream = Stream()
    hashes = [scene.stream.publish(bundle((), {}, (), {}, any_line=any_line)) for any_line in (False, True)]
    scene.spec()
    for step in range(1, 60):
        scene.now += 1
        if swapped and step % 10 == 0:
            at_ms = int((START_S + scene.now) * 1000)
            state = dict(scene.stream.events.states[JOB.encode()])
            scene.stream.activate(hashes[step // 10 % 2], step, at_ms)
            assert scene.stream.events.states[JOB.encode()] == state
        scene.progress(step, loss="2.0")
        scene.beat("n0")
    scene.line("nccl", transient=True)
    scene.now += 1
    scene.progress(61, loss="900.0")
    return scene.stream


@pytest.mark.capability("C-8")
def test_windows_counts_and_lines_held_survive_every_swap() -> None:
    swapped, plain = _trained(swapped=True), _trained(swapped=False)
    told = swapped.incidents_of(JOB)
    assert any(isinstance(record, Finding) and record.kind == "loss_spike" for record in told)
    assert [codec.encode(record) for record in told] == [codec.encode(r) for r in plain.incidents_of(JOB)]
    states = {key: fields for key, fields in swapped.events.states.items() if key not in (PARTITION, OWN)}
    assert states == {key: plain.events.states[key] for key in states}
