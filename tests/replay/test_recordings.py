"""Recordings of real jobs, folded again: what is decided of them is what was decided then.

They were made by `tests/integration/recording` (see there). A change that decides otherwise about one of
them must say why it is right; then the recording is made anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.policies.loader import load_policy, shipped_policies
from midwatch.agents.replay.recording.recording_file import Recording, read
from midwatch.agents.replay.recording.refold import Refolded, refold
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import Decision, Incident, Verdict

FILES = sorted((Path(__file__).parent / "recordings").glob("*.jsonl"))


def _read(name: str) -> tuple[Recording, tuple[Decision, ...]]:
    file = Path(__file__).parent / "recordings" / f"{name}.jsonl"
    said = file.with_name(f"{name}.decisions.json").read_bytes()
    recording = read(file.read_bytes().splitlines(), str(file))
    return recording, msgspec.json.decode(said, type=tuple[Decision, ...])


def _again(recording: Recording) -> Refolded:
    head = recording.head
    policies = {name: load_policy(name) for name in shipped_policies()}
    book = Rulebook(policies, lambda command: command, default_policy=head.policy, acting=head.acting)
    return refold(recording, WatchLimits(**head.limits), book)


def _verdicts(name: str) -> list[Verdict]:
    records = _again(_read(name)[0]).records
    return [r.verdict for r in records if isinstance(r, Incident) and r.state == "settled"]


@pytest.mark.capability("X-07")
@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_what_was_decided_is_decided_again_in_every_field(name: str) -> None:
    recording, decisions = _read(name)
    again = _again(recording)
    assert again.differences == ()
    assert again.decisions == decisions


def test_a_hang_is_a_hang() -> None:
    assert [v.mode for v in _verdicts("hang")] == ["stall"]
    assert len(_again(_read("hang")[0]).commands) == 1


def test_blindness_orders_nothing() -> None:
    assert _verdicts("blind") == []
    assert _again(_read("blind")[0]).commands == ()


def test_a_rescue_and_a_good_end() -> None:
    assert [v.error_type for v in _verdicts("nccl")] == ["nccl_timeout", ""]
    assert len(_again(_read("nccl")[0]).commands) == 1


def test_memory_is_not_mended_by_a_restart() -> None:
    assert [(v.error_type, v.transient) for v in _verdicts("oom")] == [("oom", False)]
    assert _again(_read("oom")[0]).commands == ()


def test_who_cancelled_is_believed() -> None:
    assert _again(_read("cancelled")[0]).decisions[-1].reason.endswith("cancelled it")


def test_the_node_that_never_answered_is_named() -> None:
    assert [(v.complete, v.given_up) for v in _verdicts("given_up")] == [(False, ("n2",))]


def test_the_command_line_says_the_same() -> None:
    """`replay --recording` needs none of the services, and no settings."""
    file = Path(__file__).parent / "recordings" / "oom.jsonl"
    done = subprocess.run(
        [sys.executable, "-P", "-m", "midwatch", "replay", "--recording", str(file), "--json"],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    said = json.loads(done.stdout)
    assert (said["verdict"]["error_type"], said["decision"]["action"]) == ("oom", "stop")
    assert said["differences"] == []
