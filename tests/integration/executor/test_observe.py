"""Observing is the default, and it means that nothing at all is touched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from executor_world import World, ledger
from midwatch.agents.executor.arming import lift_disarm_all
from processes import wait_for

pytestmark = pytest.mark.integration

COUNTING = """
import json, sys
from midwatch.agents.schedulers.calls import CountingCaller, SystemCaller
from midwatch.agents.executor.service import run
from midwatch.streams.settings.file import load_settings
caller = CountingCaller(SystemCaller())
run(load_settings(), caller)
print(json.dumps({"acts": caller.acts, "looks": caller.looks}))
"""


def counts(world: World) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = json.loads(world.log.read_text().splitlines()[-1])
    return found


@pytest.mark.capability("S001-13", "S001-73")
def test_an_observing_executor_calls_nothing_that_changes_anything(observing: World) -> None:
    executor = observing.executor(program=COUNTING)
    failed, checkpoints = observing.train("--fault", "nccl@15:1")
    hung = observing.run("sleep", "300")
    observing.await_end(failed)
    orders = [observing.order(failed), observing.order(hung), observing.order(hung, seq=2, action="cancel")]
    for order in orders:
        observing.send(order)
    reasons = [observing.await_outcome(order, "refused", "accepted", "done").reason for order in orders]
    executor.terminate()
    assert executor.wait(timeout=30) == 0

    assert set(reasons) == {"the watch is in observe mode"}
    assert counts(observing)["acts"] == {}
    assert len(ledger(checkpoints, "start")) == 1
    assert len(observing.effects()) == 2


def test_the_same_wrapper_does_count_when_the_watch_may_act(world: World) -> None:
    executor = world.executor(program=COUNTING)
    hung = world.run("sleep", "300")
    order = world.order(hung)
    world.send(order)
    world.await_outcome(order, "done")
    executor.terminate()
    assert executor.wait(timeout=30) == 0
    assert counts(world)["acts"] == {"signal": 1, "spawn": 1}


def test_disarm_all_works_without_kafka_and_stops_the_executor_from_acting(
    world: World, tmp_path: Path
) -> None:
    world.executor()
    hung = world.run("sleep", "300")
    elsewhere = tmp_path / "no-settings-here"
    elsewhere.mkdir()
    state = f"--state-directory={world.settings.state_directory}"
    bare = {name: value for name, value in os.environ.items() if not name.startswith("MIDWATCH_")}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "midwatch", "disarm", "--all", state],
        cwd=elsewhere,
        env=bare | {"HOME": str(elsewhere)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    order = world.order(hung)
    world.send(order)
    assert "everything was disarmed by" in world.await_outcome(order, "refused", "accepted").reason

    assert lift_disarm_all(world.settings.state_directory)
    again = world.order(hung, seq=2)
    world.send(again)
    assert world.await_outcome(again, "done", "refused").state == "done"


def test_two_jobs_of_one_command_line_are_two_jobs(world: World) -> None:
    world.executor()
    failing, its_checkpoints = world.train("--fault", "exception@15:1", job="")
    other, other_checkpoints = world.train("--iterations", "2000", "--iteration-ms", "50", job="")
    assert failing.spec.job != other.spec.job
    world.await_end(failing)
    order = world.order(failing)
    stolen = replace(world.order(failing, attempt=7), incarnation=other.incarnation)
    world.send(world.signer.sign(stolen))
    world.send(order)
    assert world.await_outcome(world.signer.sign(stolen), "refused", "accepted").state == "refused"
    world.await_outcome(order, "done")
    wait_for(lambda: bool(ledger(its_checkpoints, "done")), "the failing one is rescued")

    assert len(ledger(its_checkpoints, "start")) == 2
    assert len(ledger(other_checkpoints, "start")) == 1
    (untouched,) = [r for r in world.effects() if str(other_checkpoints) in r.argv]
    assert untouched.code is None
