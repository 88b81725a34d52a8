"""Redis is gone: the workers fold their topics from the beginning and say nothing that was said before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.streams.records import Heartbeat, Origin, Outcome, Tick
from midwatch.streams.worker.fold import PARTITION, Fields
from midwatch.streams.worker.tables import ids
from midwatch.streams.worker.tables.batch import OWN, Batch
from unit.agents.detect.incident.scene import JOB, START_S
from unit.agents.replay.recording.stream import Partition, Stream
from unit.agents.replay.recording.test_recording import OTHER, Both, _scene


def _eventful() -> Stream:
    scene: Both = _scene(("n0", "n1"))
    scene.line("nccl", transient=True)
    scene.ended()
    scene.last_words("n0")
    scene.now += 40
    scene.beat("n0")
    command = scene.commands[-1]
    scene.accepted(command)
    scene.say(
        Outcome(
            JOB, command.id, 1, "restart", "done", "ok", new_incarnation="local:200:1", checkpoint_step=10
        )
    )
    scene.incarnation = "local:200:1"
    scene.sequences.clear()
    scene.train(range(11, 31))
    beat = Heartbeat(Origin(OTHER, "n9", 1, "local:9:9", "b", "s"), 1, 1.0, 1.0, 5.0, True, 0)
    scene.stream.say(beat, int((START_S + scene.now) * 1000), OTHER)
    scene.stream.say(Tick(0), int((START_S + scene.now + 60) * 1000), None)
    return scene.stream


def _rebuilt(partition: Partition, committed: int) -> tuple[dict[bytes, Fields], list[ids.EntryId]]:
    """What a worker that finds nothing in Redis folds and sends, in batches of seven."""
    states: dict[bytes, Fields] = {PARTITION: {}, OWN: {}}
    sent: list[ids.EntryId] = []
    for first in range(0, len(partition.log), 7):
        batch = Batch(
            partition.fold, states, first - 1, "dead", mute_below=committed, marked=partition.marked
        )
        for message in partition.log[first : first + 7]:
            message = replace(message, now_ms=batch.now_ms(message.timestamp_ms))  # noqa: PLW2901  # as the shell does
            for key in batch.missing(message):
                states[key] = {}
            assert batch.apply(message)
        sent += [entry for entry, _ in batch.outgoing]
    return states, sent


@pytest.mark.parametrize("topic", ["events", "incidents"])
def test_state_comes_out_byte_for_byte_and_only_what_was_not_yet_committed_is_sent(topic: str) -> None:
    stream = _eventful()
    partition: Partition = getattr(stream, topic)
    whole, all_sent = _rebuilt(partition, 0)
    assert whole == partition.states
    assert all_sent, "something to be muted"
    for committed in range(0, len(partition.log) + 1, 5):
        states, sent = _rebuilt(partition, committed)
        assert states == partition.states
        assert sent == [entry for entry in all_sent if ids.input_offset(entry) >= committed]
