"""A real executor and a real Ray head: a command starts a training again once, at its checkpoint."""

from __future__ import annotations

import pytest

from executor_world import ledger, midwatch
from processes import wait_for
from ray_lab.world import RayWorld

pytestmark = pytest.mark.integration


def test_a_training_that_failed_is_started_again_once_and_goes_on_at_its_checkpoint(
    ray_world: RayWorld,
) -> None:
    world = ray_world
    world.executor()
    trained = world.train_on_ray("--fault", "nccl@15:1")
    command = world.restart(trained)
    done = world.await_outcome(command, "done", "failed", "refused")
    assert done.state == "done"
    assert done.new_native_id == trained.key
    wait_for(lambda: bool(ledger(trained.checkpoints, "done")), "the training is done", 60)
    assert [row["first_step"] for row in ledger(trained.checkpoints, "start")] == [1, 11]
    told = world.lab.job(trained.key)["runtime_env"]["env_vars"]
    assert told["MIDWATCH_RESUME_FROM"] == str(trained.checkpoints / "step_10")
    assert (told["MIDWATCH_RESUME_STEP"], told["MIDWATCH_ATTEMPT"]) == ("10", "2")
    world.send(command)
    wait_for(lambda: len(world.outcomes(command)) > 2, "the same command is answered again", 60)
    assert len(ledger(trained.checkpoints, "start")) == 2


def test_what_a_person_types_is_what_ray_gets(ray_world: RayWorld) -> None:
    world = ray_world
    (world.directory / "code").mkdir()
    (world.directory / "code" / "t.py").write_text("import os; print('seen', os.environ['MODE'])")
    line = ["ray", "job", "submit", "--working-dir", "code", "--submission-id", "my-run", "--no-wait"]
    line += ["--metadata-json", '{"team": "nlp"}', "--entrypoint-num-cpus", "0.5"]
    line += ["--runtime-env-json", '{"env_vars": {"MODE": "fast", "HF_TOKEN": "abc"}}']
    done = midwatch(world, "run", "--act", "--", *line, "--", "python", "t.py")
    assert done.returncode == 0, done.stderr
    assert "ray:root/my-run is started as my-run" in done.stderr.replace(_user(), "root")
    assert "--secret HF_TOKEN=FILE" in done.stderr
    job = world.lab.wait_status("my-run", "SUCCEEDED", "FAILED")
    assert "seen fast" in world.lab.api("GET", "/api/jobs/my-run/logs")[1]["logs"]
    assert job["entrypoint"] == "exec python t.py"
    assert job["metadata"]["team"] == "nlp"
    assert set(job["runtime_env"]["env_vars"]) == {"MODE", "HF_TOKEN", "MIDWATCH_JOB"}
    again = midwatch(world, "run", "--", *line, "--", "python", "t.py")
    assert (again.returncode, "has a job of that id" in again.stderr) == (1, True)
    elsewhere = midwatch(world, "run", "--", "ray", "job", "submit", "--address=http://x:1", "--", "true")
    assert (elsewhere.returncode, "another head" in elsewhere.stderr) == (2, True)


def _user() -> str:
    import getpass

    return getpass.getuser()
