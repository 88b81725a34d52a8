"""A failing job reaches a person: one message with cause, action and command, and none again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.chain.installation import Installation, Job, installation
from integration.messages.messages_worker import SOON, all_committed, forget, kill, send, start
from integration.telemetry.incidents import NCCL
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Finding, Forwarded
from processes import wait_for
from sinks import HANGS, HttpSink, http_sink
from unit.agents.messages.records import decision, incident, spec

pytestmark = pytest.mark.integration

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB <!channel>"


@pytest.fixture
def watch(stack: Endpoints, tmp_path: Path) -> Iterator[Installation]:
    with installation(tmp_path / "watch", stack) as made:
        yield made


@pytest.mark.capability("X-45")
def test_a_failing_job_gives_one_message_and_none_again_after_a_rebuild(
    watch: Installation, tmp_path: Path
) -> None:
    with http_sink() as slack:
        for name in ("match", "detect", "decide", "executor"):
            watch.start(name)
        start(watch, SLACK__URL=f"{slack.url}/secret-path")
        watch.ready()
        job = watch.run(tmp_path / "job", nodes=("n0",))
        job.ship()
        wait_for(lambda: job.step() > 0, "it trains", SOON)
        job.crash(("n0", OOM))
        wait_for(lambda: _about(slack, "failed"), "the message", SOON)
        (text,) = _about(slack, "failed")
        assert "CUDA out of memory" in text
        assert "&lt;!channel&gt;" in text
        assert "<!channel>" not in text
        assert "*Done*: " in text
        assert f"midwatch why {_name(job)}" in text
        assert "Monitoring: ACTIVE" in slack.requests[0].json["text"]
        told = len(slack.requests)
        wait_for(lambda: all_committed(watch), "the group's commit follows", SOON)
        kill(watch)
        forget(watch)
        start(watch, SLACK__URL=f"{slack.url}/secret-path")
        watch.ready("messages")
        spike = Finding(_name(job), 2, "loss_spike", True, 1, "the loss is 9 at step 7")
        send(watch, Forwarded(spike))
        wait_for(lambda: _about(slack, ": Loss Spike"), "a message after the rebuild", SOON)
        after = [request.json["text"].splitlines()[0] for request in slack.requests[told:]]
        assert len(after) == 2, after
        assert "RESOLVED" in after[0], "the second attempt runs"
        assert "secret-path" not in (watch.directory / "messages.log").read_text()
        job.finish()


def test_a_channel_that_hangs_delays_no_rescue_no_other_channel_and_no_end_of_the_worker(
    watch: Installation, tmp_path: Path
) -> None:
    """Where it hangs for good, another channel hears of it. At a first start nobody hears of what is old."""
    send(watch, spec("long ago"), age_s=1200)
    send(watch, spec("lately"), age_s=60)
    with http_sink(usual=HANGS) as hook, http_sink() as slack:
        start(watch, WEBHOOK__URL=hook.url, SLACK__URL=slack.url, TIMEOUT="30s", ELSEWHERE="1h")
        watch.ready("messages")
        send(watch, incident(), decision())
        wait_for(lambda: _about(slack, "failed"), "the message on the channel that works", SOON)
        watched = [each for each in slack.taken() if "is watched" in each.json["text"].splitlines()[0]]
        assert len(watched) == 1, "the one that is old is muted"
        wait_for(lambda: hook.requests, "the other channel is asked", SOON)
        _rescue(watch, tmp_path / "job")
        assert hook.taken() == [], "it has hung all the while"
        worker = watch.processes["messages"]
        worker.terminate()
        assert worker.wait(20) == 0
        start(watch, WEBHOOK__URL=hook.url, SLACK__URL=slack.url)
        noted = "the channel webhook does not take messages: no answer"
        wait_for(lambda: any(noted in each.json["text"] for each in slack.taken()), "it is told of", SOON)
        first = hook.requests[0].json["id"]
        wait_for(lambda: first in {each.json["id"] for each in hook.requests[1:]}, "it comes again", SOON)


def _rescue(watch: Installation, directory: Path) -> None:
    """A job fails and is started again."""
    for name in ("match", "detect", "decide", "executor"):
        watch.start(name)
    watch.ready("match", "detect", "decide", "executor")
    job = watch.run(directory, nodes=("n0",))
    job.ship()
    wait_for(lambda: job.step() > 0, "it trains", SOON)
    job.crash(("n0", NCCL))
    wait_for(lambda: job.starts() == 2, "the rescue", SOON)
    job.finish()


def _name(job: Job) -> str:
    story = job.story()
    assert story is not None
    return story.job


def _about(slack: HttpSink, words: str) -> list[str]:
    texts = (str(each.json["text"]) for each in slack.taken())
    return [text for text in texts if words in text.splitlines()[0] and "RESOLVED" not in text]
