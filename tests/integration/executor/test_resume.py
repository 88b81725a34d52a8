"""The new start is told which checkpoint to load: a script that always begins at 1 shows what it gets."""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path
from typing import Any

import pytest

from executor_world import World, midwatch
from midwatch.agents.launch.job_spec import Started
from midwatch.agents.query.inquiry import ask_job
from midwatch.streams.host.clock import now_ms
from processes import wait_for

pytestmark = pytest.mark.integration

SCRIPT = """
import json, os, sys
names = ("MIDWATCH_RESUME_FROM", "MIDWATCH_RESUME_STEP", "MIDWATCH_ATTEMPT")
shown = {"argv": sys.argv[2:], **{name: os.environ.get(name) for name in names}}
with open(sys.argv[1], "a") as file:
    file.write(json.dumps(shown) + "\\n")
for step in range(1, 4):
    print(f"step {step}/100 loss 2.0", flush=True)
sys.exit(1)
"""


def checkpoint(directory: Path, step: int) -> Path:
    """A complete checkpoint, whose manifest proves it."""
    folder = directory / f"step_{step}"
    folder.mkdir(parents=True)
    (folder / "weights.pt").write_bytes(b"weights")
    (folder / "manifest.json").write_text(json.dumps({"shards": [{"file": "weights.pt", "bytes": 7}]}))
    return folder


def torn(directory: Path, step: int) -> Path:
    """A checkpoint of which a half is missing; `latest` names it all the same."""
    folder = checkpoint(directory, step)
    (folder / "weights.pt").write_bytes(b"wei")
    (directory / "latest").write_text(folder.name)
    return folder


def begin(world: World, directory: Path, *, arguments: tuple[str, ...] = ()) -> tuple[Started, Path]:
    """The script that always begins at 1, and the file in which each start notes what it was given."""
    script, shown = world.directory / "always_at_1.py", world.directory / "shown.jsonl"
    script.write_text(SCRIPT)
    started = world.run(
        sys.executable,
        str(script),
        str(shown),
        "--lr",
        "1e-4",
        job=f"j{secrets.token_hex(4)}",
        checkpoint_directory=str(directory),
        resume_arguments=arguments,
    )
    world.await_end(started)
    return started, shown


def starts(shown: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shown.read_text().splitlines()] if shown.exists() else []


def restart(world: World, started: Started, shown: Path) -> dict[str, Any]:
    """What the second start was given."""
    order = world.order(started)
    world.send(order)
    world.await_outcome(order, "done", "failed")
    wait_for(lambda: len(starts(shown)) > 1, "the second start")
    return starts(shown)[1]


def reason(world: World, started: Started) -> str:
    """Why the restart is done, as its outcome and `why` say it."""
    return world.outcomes(world.order(started))[-1].reason


@pytest.mark.capability("S002-05")
def test_a_new_start_is_told_the_checkpoint_and_gets_the_arguments_for_it(world: World) -> None:
    world.executor()
    directory = world.directory / "its checkpoints"
    folder = checkpoint(directory, 40)
    template = ("--load", "{checkpoint}", "--at={step}", "{directory}")
    started, shown = begin(world, directory, arguments=template)
    second = restart(world, started, shown)

    assert starts(shown)[0] == {
        "argv": ["--lr", "1e-4"],
        "MIDWATCH_RESUME_FROM": None,
        "MIDWATCH_RESUME_STEP": None,
        "MIDWATCH_ATTEMPT": None,
    }
    assert second == {
        "argv": ["--lr", "1e-4", "--load", str(folder), "--at=40", str(directory)],
        "MIDWATCH_RESUME_FROM": str(folder),
        "MIDWATCH_RESUME_STEP": "40",
        "MIDWATCH_ATTEMPT": "2",
    }


def test_a_torn_newest_checkpoint_is_not_what_the_job_is_told_to_load(world: World) -> None:
    world.executor()
    directory = world.directory / "checkpoints"
    folder = checkpoint(directory, 40)
    torn(directory, 60)
    started, shown = begin(world, directory, arguments=("--load", "{checkpoint}"))
    second = restart(world, started, shown)

    assert second["MIDWATCH_RESUME_FROM"] == str(folder)
    assert second["MIDWATCH_RESUME_STEP"] == "40"
    assert second["argv"][-2:] == ["--load", str(folder)]
    skipped = directory / "step_60"
    assert f"skips the checkpoint {skipped}: weights.pt has 3 of 7 bytes" in reason(world, started)


@pytest.mark.capability("S002-33")
def test_without_a_complete_checkpoint_nothing_is_added(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDWATCH_RESUME_FROM", "/of/another/job")
    world.executor()
    directory = world.directory / "checkpoints"
    torn(directory, 60)
    started, shown = begin(world, directory, arguments=("--load", "{checkpoint}"))
    second = restart(world, started, shown)

    assert second["argv"] == ["--lr", "1e-4"]
    assert second["MIDWATCH_RESUME_FROM"] is None
    assert second["MIDWATCH_ATTEMPT"] == "2"
    why = reason(world, started)
    assert f"no complete checkpoint in {directory}: skips the checkpoint" in why
    assert why.endswith(
        "; see that the training saves into --checkpoint-dir, under a name that docs/resume.md lists"
    )


def test_the_command_line_splits_the_arguments_once_and_refuses_what_it_cannot_fill(world: World) -> None:
    world.executor()
    directory = world.directory / "checkpoints"
    folder = checkpoint(directory, 40)
    script, shown = world.directory / "always_at_1.py", world.directory / "shown.jsonl"
    script.write_text(SCRIPT)
    line = ["run", "--job", "split", "--act", f"--checkpoint-dir={directory}"]
    words = ["--", sys.executable, str(script), str(shown)]

    for text, why in (("--load {model}", "{model}"), ("--load '{checkpoint}", "quotation")):
        refused = midwatch(world, *line, "--resume-arg", text, *words)
        assert refused.returncode == 2
        assert why in refused.stderr
    assert not starts(shown)

    run = midwatch(world, *line, "--json", "--resume-arg", "--load {checkpoint} '--note=a; b' $HOME", *words)
    assert run.returncode == 0, run.stderr
    wait_for(lambda: len(starts(shown)) == 1, "the first start")
    body = json.loads(run.stdout)
    wait_for(lambda: any(f.ended for f in world.facts(body["job"])), "its end")
    _restart_by_hand(world, body)
    wait_for(lambda: len(starts(shown)) == 2, "the second start")
    assert starts(shown)[1]["argv"] == ["--load", str(folder), "--note=a; b", "$HOME"]


def _restart_by_hand(world: World, body: dict[str, Any]) -> None:
    """A signed command for the start that the command line made."""
    timeline, _ = ask_job(world.settings, body["job"], now_ms())
    assert timeline.signed is not None
    order = world.order(Started(timeline.signed, body["incarnation"]))
    world.send(order)
    assert world.await_outcome(order, "done", "failed").state == "done"
