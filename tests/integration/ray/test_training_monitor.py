"""The training monitor on a real Ray head: what its documentation shows, and that it never starts a twin."""

from __future__ import annotations

import logging
import secrets
import shlex
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from executor_world import ledger
from midwatch.agents import training_monitor
from midwatch.agents.training_monitor import (
    JobNotFound,
    JobStillRuns,
    auto_restart,
    check_efa_utilization,
    check_gpu_utilization,
    check_job_status,
    detect_stall,
    find_latest_checkpoint,
    get_current_step,
    get_training_health,
    monitor_job,
    submit_job_with_resume,
    verify_ray_resources,
)
from midwatch.streams.records.effect_keys import effect_key
from processes import wait_for
from ray_lab.lab import RayLab
from ray_lab.world import RayWorld

TRAINING = Path(__file__).with_name("short_training.py")


@pytest.fixture
def head(ray_head: RayLab, monkeypatch: pytest.MonkeyPatch) -> RayLab:
    """A head at rest, whose token the variables of Ray's own client hold."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", ray_head.token)
    return ray_head


@pytest.fixture
def name() -> str:
    return f"training-{secrets.token_hex(4)}"


def entrypoint(directory: Path, fault: str = "fail") -> str:
    return shlex.join([sys.executable, str(TRAINING), str(directory), fault])


def first_start(lab: RayLab, name: str, directory: Path, fault: str = "fail") -> None:
    """What a person submits, without midwatch."""
    body = {"submission_id": name, "entrypoint": f"exec {entrypoint(directory, fault)}"}
    assert lab.api("POST", "/api/jobs/", body)[0] == 200


def starts(directory: Path) -> list[int]:
    """The first step of each start."""
    return [int(line) for line in (directory / "starts").read_text().split()]


@pytest.mark.capability("S002-05", "S002-17", "S002-28", "S002-41")
def test_the_first_example_a_training_that_fails_is_completed_from_its_checkpoint(
    head: RayLab, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first_start(head, name, tmp_path)
    logging.basicConfig(level=logging.INFO)
    result = auto_restart(
        head_pod=head.address,
        job_name=name,
        checkpoint_dir=str(tmp_path),
        max_retries=10,
        retry_delay=0.2,
        stagnation_threshold=60,
        check_interval=0.2,
    )
    if result["success"]:
        print(f"Training completed at step {result['final_step']}")
    else:
        print(f"Training failed after {result['total_retries']} retries: {result['reason']}")

    assert "Training completed at step 10" in capsys.readouterr().out
    assert (result["total_retries"], result["reason"]) == (1, "completed")
    assert starts(tmp_path) == [1, 5]
    assert result["resumed_from"] == str(tmp_path / "step_4")
    assert result["job_id"] == effect_key(f"training_monitor/{name}", 1, "start")
    again = auto_restart(head.address, name, str(tmp_path), check_interval=0.2)
    assert (again["success"], again["total_retries"], starts(tmp_path)) == (True, 1, [1, 5])


@pytest.mark.capability("S002-18", "S002-29", "S002-41")
def test_the_second_example_watches_in_the_background(
    head: RayLab, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first_start(head, name, tmp_path)

    def monitor_in_background(head_pod: str, job_id: str) -> None:
        result = monitor_job(head_pod, job_id, check_interval=0.2)
        print(f"Job {job_id} finished with status: {result['status']}")
        seen.update(result)

    seen: dict[str, Any] = {}
    thread = threading.Thread(target=monitor_in_background, args=(head.address, name))
    thread.daemon = True
    thread.start()
    thread.join(60)

    assert f"Job {name} finished with status: FAILED" in capsys.readouterr().out
    assert (seen["final_step"], seen["timed_out"]) == (5, False)
    assert seen["throughput"] == {"value": 1200.0, "unit": "tokens/s"}
    assert starts(tmp_path) == [1]


@pytest.mark.capability("S002-19", "S002-22", "S002-30", "S002-41")
def test_the_third_example_is_a_restart_loop_of_ones_own(
    head: RayLab, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first_start(head, name, tmp_path)
    head_pod = head.address
    job_id = name
    retry_count = 0
    max_retries = 5

    while retry_count < max_retries:
        status = check_job_status(head_pod, job_id)

        if status == "SUCCEEDED":
            print("Training completed successfully!")
            break
        elif status == "FAILED":  # noqa: RET508 - as the example has it
            print(f"Job failed, attempt {retry_count + 1}/{max_retries}")

            # Custom logic to find latest checkpoint
            checkpoint_path = find_latest_checkpoint(str(tmp_path))

            # Submit new job
            job_id = submit_job_with_resume(
                head_pod=head_pod,
                checkpoint_path=checkpoint_path,
                config={"entrypoint": entrypoint(tmp_path)},
            )
            retry_count += 1
            time.sleep(0.1)  # the example's own wait
        else:
            time.sleep(0.1)  # the example's own wait

    shown = capsys.readouterr().out
    assert "Job failed, attempt 1/5" in shown
    assert "Training completed successfully!" in shown
    assert starts(tmp_path) == [1, 5]
    assert get_current_step(head_pod, job_id) == 10


@pytest.mark.capability("S002-04", "S002-21", "S002-02", "S002-20")
def test_a_training_that_stalls_is_stopped_and_started_again_once_by_two_monitors(
    head: RayLab, tmp_path: Path, name: str
) -> None:
    first_start(head, name, tmp_path, "hang")
    wait_for(lambda: get_current_step(head.address, name) == 5, "it hangs after step 5", 60)
    assert check_job_status(head.address, name) == "RUNNING"
    assert not detect_stall(head.address, name)
    wait_for(lambda: detect_stall(head.address, name, stagnation_threshold=0.5), "the stall is seen", 60)
    results: list[dict[str, Any]] = []

    def watch() -> None:
        found = auto_restart(
            head.address, name, str(tmp_path), retry_delay=0.2, stagnation_threshold=1, check_interval=0.2
        )
        results.append(found)

    crew = [threading.Thread(target=watch) for _ in range(2)]
    for each in crew:
        each.start()
    for each in crew:
        each.join(90)
    assert [found["success"] for found in results] == [True, True]
    assert starts(tmp_path) == [1, 5]
    assert head.job(name)["status"] == "STOPPED"


@pytest.mark.capability("S002-06", "S002-32")
def test_retries_end_and_a_job_that_nobody_knows_is_told_with_the_remedy(
    head: RayLab, tmp_path: Path, name: str
) -> None:
    head.api("POST", "/api/jobs/", {"submission_id": name, "entrypoint": "exec sh -c 'exit 3'"})
    result = auto_restart(
        head.address, name, str(tmp_path / "none"), max_retries=1, retry_delay=0.1, check_interval=0.1
    )
    assert (result["success"], result["total_retries"]) == (False, 1)
    assert result["reason"] == "it failed, and all 1 retries are used"
    assert result["final_step"] is None
    for ask in (check_job_status, get_current_step, monitor_job):
        with pytest.raises(JobNotFound, match="ray job list"):
            ask(head.address, "nobody")
    with pytest.raises(JobNotFound, match="nobody"):
        auto_restart(head.address, "nobody", str(tmp_path))


def test_a_job_that_somebody_stopped_stays_stopped_and_one_that_runs_gets_no_twin(
    head: RayLab, tmp_path: Path, name: str
) -> None:
    first_start(head, name, tmp_path, "hang")
    wait_for(lambda: get_current_step(head.address, name) == 5, "it trains", 60)
    config = {"entrypoint": entrypoint(tmp_path, "hang"), "resumes": name}
    with pytest.raises(JobStillRuns):
        submit_job_with_resume(head.address, str(tmp_path / "step_4"), config)
    found = monitor_job(head.address, name, check_interval=0.1, timeout=0.3)
    assert (found["status"], found["timed_out"]) == ("RUNNING", True)
    head.api("POST", f"/api/jobs/{name}/stop")
    head.wait_status(name, "STOPPED")
    assert check_job_status(head.address, name) == "UNKNOWN"
    result = auto_restart(head.address, name, str(tmp_path))
    assert (result["success"], result["status"], starts(tmp_path)) == (False, "STOPPED", [1])


@pytest.mark.capability("S002-24", "S002-36", "S002-38")
def test_the_health_of_a_training_on_a_head_without_real_gpus(
    head: RayLab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "step_4"
    folder.mkdir()
    (folder / "state.json").write_text("4")
    (tmp_path / "latest").symlink_to("step_4")
    wait_for(lambda: verify_ray_resources(head.address)["healthy"], "the head reports its resources", 30)
    report = get_training_health(head_pod=head.address, checkpoint_dir=str(tmp_path))
    assert report["ray"]["gpus_available"] == 8
    assert (report["ray"]["gpus_used"], report["ray"]["cpus_available"]) == (0, 4)
    assert (report["gpu"]["gpu_count"], report["gpu"]["healthy"]) == (0, True)
    assert report["checkpoints"]["latest_step"] == 4
    assert report["efa"]["transport"] is None
    assert report["issues"] == ["Ray has 8 GPUs and has given out none of them"]
    training_monitor.print_training_health(report)
    assert "0 of 8 GPUs and 0 of 4 CPUs are in use" in capsys.readouterr().out


@pytest.mark.capability("S002-25")
def test_the_transport_is_read_from_the_drivers_log_by_the_api(head: RayLab, name: str) -> None:
    line = "h:1:1 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 4 nics)"
    body = {"submission_id": name, "entrypoint": f"exec echo '{line}'"}
    head.api("POST", "/api/jobs/", body)
    head.wait_status(name, "SUCCEEDED")
    found = check_efa_utilization(head.address)
    assert (found["efa_active"], found["transport"], found["evidence"]) == (True, "efa", line)


def test_a_head_that_is_away_is_unknown_and_proves_nothing() -> None:
    nowhere = "127.0.0.1:9"
    assert check_job_status(nowhere, "a") == "UNKNOWN"
    assert get_current_step(nowhere, "a") is None
    assert not detect_stall(nowhere, "a", stagnation_threshold=0)
    assert verify_ray_resources(nowhere)["gpus_used"] is None
    assert check_gpu_utilization(nowhere)["healthy"] is False


KUBECTL = """#!/bin/sh
# A stand-in for `kubectl exec -i -n NAMESPACE POD -- COMMAND`: the command runs here, beside a real head.
[ "$4 $5 $6" = "train head-0 --" ] && shift 6 && exec "$@"
echo "Error from server (NotFound): pods \\"$5\\" not found" >&2
exit 1
"""


@pytest.mark.capability("S002-35")
def test_a_pod_is_reached_through_kubectl_here_a_stand_in_that_runs_the_command_beside_the_head(
    head: RayLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "kubectl").write_text(KUBECTL)
    (bin_ / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:{head.environment['PATH']}")
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", head.address)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    app = tmp_path / "app"
    app.mkdir()
    (app / "train.py").write_text("import os; print('step', os.environ['MIDWATCH_RESUME_STEP'])")
    pod = "train/head-0"
    config = {"entrypoint": "python train.py", "runtime_env": {"working_dir": str(app)}}
    job_id = submit_job_with_resume(pod, str(tmp_path / "ckpt" / "step_7"), config)
    result = monitor_job(pod, job_id, check_interval=0.2, timeout=60)
    assert (result["status"], result["final_step"]) == ("SUCCEEDED", 7)
    by_address = submit_job_with_resume(head.address, str(tmp_path / "other" / "step_8"), config)
    assert monitor_job(pod, by_address, check_interval=0.2, timeout=60)["final_step"] == 8
    assert verify_ray_resources("head-0", namespace="train")["cpus_available"] == 4
    with pytest.raises(training_monitor.PodNotFound, match="head pod's name"):
        check_job_status("train/other-pod", job_id)


@pytest.mark.integration
def test_the_monitor_and_the_executor_together_start_a_training_again_once(
    ray_world: RayWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both want the same start of the same attempt. Ray has one submission of that id."""
    world = ray_world
    monkeypatch.setenv("RAY_AUTH_TOKEN", world.lab.token)
    world.executor()
    trained = world.train_on_ray("--fault", "nccl@15:1")
    job = trained.started.spec.job
    found: dict[str, Any] = {}

    def watch() -> None:
        directory = str(trained.checkpoints)
        found.update(auto_restart(world.lab.address, job, directory, retry_delay=0.1, check_interval=0.1))

    thread = threading.Thread(target=watch)
    thread.start()
    command = world.restart(trained)
    assert world.await_outcome(command, "done", "failed", "refused").new_native_id == trained.key
    thread.join(90)
    assert (found["success"], found["job_id"]) == (True, trained.key)
    assert [row["first_step"] for row in ledger(trained.checkpoints, "start")] == [1, 11]
