"""The training monitor without a head: its signatures, its log, kubectl, and what it needs installed."""

from __future__ import annotations

import inspect
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from house.tree import ROOT, SOURCE_ROOTS
from midwatch.agents import training_monitor as monitor
from midwatch.agents.training_monitor.activity_log import log
from midwatch.streams.errors import ConfigurationError, MidwatchError, UsageError

SIGNATURES = {
    "auto_restart": "head_pod, job_name, checkpoint_dir, max_retries=10, retry_delay=60, "
    "stagnation_threshold=300, check_interval=30",
    "monitor_job": "head_pod, job_id, check_interval=30, timeout=None",
    "check_job_status": "head_pod, job_id",
    "get_current_step": "head_pod, job_id",
    "detect_stall": "head_pod, job_id, stagnation_threshold=300",
    "submit_job_with_resume": "head_pod, checkpoint_path, config",
    "check_gpu_utilization": "head_pod, namespace='default'",
    "verify_ray_resources": "head_pod, namespace='default'",
    "check_efa_utilization": "head_pod, namespace='default'",
    "get_training_health": "head_pod, checkpoint_dir=None, all_pods=None, namespace='default'",
    "print_training_health": "report",
    "find_latest_checkpoint": "checkpoint_dir",
}


@pytest.mark.capability("S002-41", "S002-38", "S002-04")
@pytest.mark.parametrize("name", SIGNATURES)
def test_the_functions_have_the_parameters_and_defaults_of_the_skill(name: str) -> None:
    shown = inspect.signature(getattr(monitor, name)).parameters.values()
    bare = [str(p.replace(annotation=inspect.Parameter.empty)) for p in shown]
    assert ", ".join(bare) == SIGNATURES[name]


@pytest.mark.capability("S002-40")
def test_it_is_imported_without_anything_but_the_standard_library() -> None:
    roots = os.pathsep.join(str(ROOT / part) for part in SOURCE_ROOTS)
    done = subprocess.run(
        [sys.executable, "-S", "-P", "-c", "import midwatch.agents.training_monitor"],
        env={"PYTHONPATH": roots},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.capability("S002-09", "S002-26", "S002-27")
def test_the_log_goes_where_the_variables_say_with_level_and_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "monitor.log"
    monkeypatch.setenv("TRAINING_MONITOR_LOG_FILE", str(file))
    monkeypatch.setenv("TRAINING_MONITOR_LOG_LEVEL", "warning")
    log().info("not this")
    log().warning("this")
    (line,) = file.read_text().splitlines()
    assert line.endswith("WARNING this")
    assert line[:4].isdigit()
    monkeypatch.setenv("TRAINING_MONITOR_LOG_LEVEL", "LOUD")
    with pytest.raises(ConfigurationError, match="DEBUG, INFO, WARNING, ERROR"):
        log()
    monkeypatch.setenv("TRAINING_MONITOR_LOG_LEVEL", "DEBUG")
    monkeypatch.setenv("TRAINING_MONITOR_LOG_FILE", str(tmp_path / "none" / "x"))
    with pytest.raises(ConfigurationError, match="cannot be written"):
        log()


@pytest.mark.capability("S002-26")
def test_without_variables_the_log_goes_to_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("TRAINING_MONITOR_LOG_FILE", "TRAINING_MONITOR_LOG_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("midwatch.agents.training_monitor.activity_log._made", None)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    log().info("started")
    assert capsys.readouterr().out.endswith("INFO started\n")


NVIDIA_SMI = """#!/bin/sh
# A stand-in for kubectl before a pod with two GPUs; the output is made up, in the form of nvidia-smi.
case "$*" in
  *forbidden*) echo 'Error from server (Forbidden): pods "x" is forbidden: User "ann"' >&2; exit 1;;
  *cpu-pod*nvidia-smi*) echo 'sh: nvidia-smi: not found' >&2; exit 127;;
  *idle*query-gpu*) printf '0, 3, 81559\\n0, 3, 81559\\n';;
  *query-gpu*) printf '97, 70123, 81559\\n[N/A], 71000, 81559\\n';;
  *idle*query-compute-apps*) ;;
  *query-compute-apps*) printf '4711, python3, 70000\\n';;
  *tcp*grep*) echo 'h:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>';;
  *grep*) echo 'h:1:1 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 4 nics)';;
  *python3*/ckpt) echo '[true, "/ckpt/step_1000"]';;
  *python3*/gone) echo '[false, ""]';;
  *python3*) cat "${0%/*}/status.json";;
esac
"""


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kubectl").write_text(NVIDIA_SMI)
    (tmp_path / "kubectl").chmod(0o755)
    usage = {"CPU": [6.0, 8.0], "GPU": [2.0, 2.0]}
    status = {"data": {"clusterStatus": {"loadMetricsReport": {"usage": usage}}}}
    (tmp_path / "status.json").write_text(json.dumps([200, json.dumps(status)]))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


@pytest.mark.usefixtures("kubectl")
@pytest.mark.capability("S002-10", "S002-23")
def test_the_gpus_of_a_pod_as_nvidia_smi_shows_them() -> None:
    assert monitor.check_gpu_utilization("head", "train") == {
        "gpu_count": 2,
        "gpu_utilizations": [97, None],
        "memory_used": [70123, 71000],
        "memory_total": [81559, 81559],
        "processes": [{"pid": 4711, "name": "python3", "memory_used": 70000}],
        "avg_utilization": 97.0,
        "healthy": True,
        "error": None,
    }
    none = monitor.check_gpu_utilization("cpu-pod")
    assert (none["healthy"], none["gpu_count"], none["avg_utilization"]) == (False, 0, 0.0)


@pytest.mark.usefixtures("kubectl")
@pytest.mark.capability("S002-14", "S002-15", "S002-16", "S002-31", "S002-37", "S002-39")
def test_one_report_of_all_pods(capsys: pytest.CaptureFixture[str]) -> None:
    report = monitor.get_training_health("head", "/ckpt", all_pods=["head", "worker-tcp", "worker-idle"])
    assert (report["gpu"]["gpu_count"], report["gpu"]["gpu_utilizations"]) == (6, [97, None, 97, None, 0, 0])
    assert set(report) == {"healthy", "gpu", "efa", "checkpoints", "ray", "pods", "issues"}
    assert (report["efa"]["transport"], report["efa"]["efa_active"]) == ("socket", False)
    assert report["checkpoints"]["latest_step"] == 1000
    assert (report["ray"]["gpus_used"], report["ray"]["cpus_used"]) == (2, 6)
    (issue,) = report["issues"]
    assert "TCP sockets, a cause of timeouts in collectives such as ALLGATHER" in issue
    assert not report["healthy"]
    monitor.print_training_health(report)
    shown = capsys.readouterr().out
    assert "step 1000" in shown
    assert issue in shown
    good = monitor.get_training_health("head", "/ckpt")
    assert (good["healthy"], good["issues"], good["efa"]["transport"]) == (True, [], "efa")


@pytest.mark.usefixtures("kubectl")
def test_what_a_report_finds_wrong() -> None:
    report = monitor.get_training_health("idle", "/gone")
    assert "no GPU does anything" in report["issues"]
    assert "no complete checkpoint in /gone" in report["issues"]
    assert report["checkpoints"]["latest_step"] is None


@pytest.mark.usefixtures("kubectl")
@pytest.mark.capability("S002-34")
def test_permission_denied_says_what_to_do() -> None:
    with pytest.raises(monitor.AccessDenied, match="kubectl is configured") as caught:
        monitor.check_job_status("forbidden", "a")
    assert isinstance(caught.value, MidwatchError)


def test_without_kubectl_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(monitor.HeadUnreachable, match="kubectl is not installed"):
        monitor.check_gpu_utilization("head")


@pytest.mark.capability("S002-28", "S002-33")
def test_the_latest_checkpoint_is_the_newest_complete_one(tmp_path: Path) -> None:
    for step in (100, 500, 1000):
        (tmp_path / f"step_{step}").mkdir()
        (tmp_path / f"step_{step}" / "state.json").write_text("{}")
    (tmp_path / "latest").symlink_to("step_500")
    assert monitor.find_latest_checkpoint(str(tmp_path)) == str(tmp_path / "step_500")
    with pytest.raises(monitor.CheckpointNotFound, match="verify that the path is correct"):
        monitor.find_latest_checkpoint(str(tmp_path / "none"))


def test_a_configuration_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(UsageError, match="no entrypoint"):
        monitor.submit_job_with_resume("127.0.0.1:9", "/c/step_1", {})
    with pytest.raises(UsageError, match="no key 'runtimeenv'"):
        monitor.submit_job_with_resume("127.0.0.1:9", "/c/step_1", {"entrypoint": "x", "runtimeenv": {}})
