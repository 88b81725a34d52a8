"""A foreign detector, policy and scheduler, in the real chain and under the real executor."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from executor_world import World
from foreign_package import put_shelf_on_path, variables
from integration.chain.installation import installation
from midwatch.agents.launch.job_spec import RunRequest
from midwatch.agents.launch.start import start
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.agents.schedulers.calls import SystemCaller
from midwatch.streams.records.effect_keys import effect_key
from midwatch.streams.settings.schema import ExtensionSettings
from processes import wait_for

pytestmark = pytest.mark.integration

HIGH = (
    " iteration {step:8d}/  100000 | consumed samples: {step:12d} | elapsed time per iteration (ms): 100.0 | "
    "learning rate: 1.0E-04 | global batch size:     8 | lm loss: 2.000000E+00 | loss scale: 1.0 | "
    "grad norm: 50.000 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has 1.00 GiB free"
JOB = 'echo $$ >> "$0"; test $(wc -l < "$0") -ge 2'
"""Its first start fails, every other one ends well."""


def test_a_detector_finds_and_a_policy_decides_in_the_chain(
    stack: Endpoints, tmp_path: Path, installed: Path
) -> None:
    parts = ExtensionSettings(detectors=("grad_norm",), policies=("patient",))
    with installation(tmp_path / "watch", stack) as made:
        made.settings = replace(made.settings, extensions=parts)
        made.environment |= variables(installed)
        made.environment |= {
            "MIDWATCH_EXTENSIONS__DETECTORS": "grad_norm",
            "MIDWATCH_EXTENSIONS__POLICIES": "patient",
        }
        for name in ("match", "detect", "decide", "executor"):
            made.start(name)
        made.ready()
        job = made.run(tmp_path / "job", "--policy=patient", nodes=("n0",))
        job.ship()
        wait_for(lambda: job.step() >= 3, "the job makes progress")
        made.replace("detect", MIDWATCH_EXTENSIONS__DETECTORS="")
        log = made.directory / "detect.log"
        missing = "judged with the detector grad_norm of version 1, and here it is not enabled"
        wait_for(lambda: missing in log.read_text(), "a worker without the detector says that it waits")
        made.replace("detect")
        far = [("n0", HIGH.format(step=5000 + number)) for number in range(4)]
        job.crash(*far, ("n0", OOM))
        wait_for(lambda: job.starts() == 2, "it is started again")

        (found,) = [finding for finding in job.findings("grad_norm") if finding.open]
        assert found.detail == "the gradient's norm is 50.000 at step 5002"
        (decision,) = [each for each in job.decisions() if each.action == "restart"]
        assert (decision.policy, len(job.commands())) == ("patient", 1)
        assert "may have been another's" in decision.reason
        made.finish_jobs()


def test_the_executor_starts_a_job_on_a_foreign_scheduler_exactly_once(
    stack: Endpoints, tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{put_shelf_on_path(tmp_path)}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    enabled = {"PATH": path, "MIDWATCH_EXTENSIONS__SCHEDULERS": "shelf", **variables(installed)}
    world = World(tmp_path, stack, environment=enabled)
    try:
        world.executor()
        starts = tmp_path / "starts"
        settings = replace(world.settings, extensions=ExtensionSettings(schedulers=("shelf",)))
        wanted = RunRequest(
            ("sh", "-c", JOB, str(starts)), tmp_path, job="toy", armed=True, scheduler="shelf"
        )
        started = start(wanted, settings, SystemCaller())
        world.await_end(started)
        order = world.order(started)
        world.send(order)
        world.send(order)
        done = world.await_outcome(order, "done", "failed")
        assert done.state == "done", done.reason
        again = world.order(started, seq=2)
        world.send(again)
        world.await_outcome(again, "done", "refused", "failed", "expired")
        wait_for(lambda: len(starts.read_text().splitlines()) == 2, "the second start has run")

        submissions = (tmp_path / "shelf" / "submissions").read_text().split()
        assert submissions[1:] == [effect_key(started.spec.job, 1, "start")]
        assert done.new_incarnation.startswith("shelf:")
        assert done.new_incarnation != started.incarnation
    finally:
        world.close()
