"""An outcome is printed with the number of its restart, whichever topic is read first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from midwatch.agents.local.up.live_steps import Following, ReadMessage
from midwatch.agents.signing import ensure_keys
from midwatch.streams.records import Command, Forwarded, Outcome
from midwatch.streams.records.codec import encode
from midwatch.streams.settings.schema import Settings

JOB = "local:ada/toy"
COMMAND = Command(
    id="c1",
    job=JOB,
    attempt=1,
    seq=1,
    action="restart",
    incarnation="local:10:20",
    incident="i1",
    revision=1,
    reason="nccl_timeout is transient",
    not_before_ms=1,
    expires_ms=2,
    issuer="decide",
    spec="s",
    bundle="b",
    restart_number=1,
    restart_limit=3,
)
ACCEPTED = Outcome(JOB, "c1", 1, "restart", "accepted", "armed when it was started")
DONE = replace(ACCEPTED, state="done", reason="")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def following(tmp_path: Path, said: list[str]) -> Following:
    return Following(replace(Settings(), state_directory=tmp_path), said.append)


def message(record: Command | Forwarded, read_s: float, at_ms: int = 1_000) -> ReadMessage:
    return ReadMessage(encode(record), at_ms, None, read_s)


def told(said: list[str]) -> list[str]:
    """Each line, from its action on, to the end of the restart's number."""
    return [line.split(": ", 1)[1].split(", command")[0] for line in said]


def test_an_outcome_waits_for_the_command_of_another_topic(
    following: Following, said: list[str], tmp_path: Path
) -> None:
    waiting = following.print_all([message(Forwarded(ACCEPTED), 0.0)], 0.0)
    assert said == []
    signed = ensure_keys(tmp_path).sign(COMMAND)
    late = [message(Forwarded(DONE), 0.1, 1_100), message(signed, 0.1, 900)]
    assert following.print_all([*waiting, *late], 0.1) == []
    assert told(said) == [
        "command → restart, attempt 1 of 3",
        "restart → accepted, attempt 1 of 3",
        "restart → done, attempt 1 of 3",
    ]


def test_an_outcome_of_a_command_that_nobody_shows_is_printed_at_last(
    following: Following, said: list[str]
) -> None:
    waiting = following.print_all([message(Forwarded(ACCEPTED), 0.0)], 1.9)
    assert (len(waiting), said) == (1, [])
    assert following.print_all(waiting, 2.0) == []
    assert told(said) == ["restart → accepted"]


def test_a_command_without_our_signature_gives_no_number(following: Following, said: list[str]) -> None:
    messages = [message(COMMAND, 0.0), message(Forwarded(ACCEPTED), 0.0)]
    assert len(following.print_all(messages, 0.0)) == 1
    assert said == []
