"""The health of a training in one report: GPUs, transport, checkpoints, and what Ray has given out."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from midwatch.agents.training_monitor.checkpoints import look
from midwatch.agents.training_monitor.driver_log import transport
from midwatch.agents.training_monitor.errors import AccessDenied
from midwatch.agents.training_monitor.head.access import (
    DEFAULT_NAMESPACE,
    AddressedHead,
    HeadAccess,
    PodHead,
    head_of,
)
from midwatch.streams.services.ray_jobs import HeadAnswer

_OK = 200
_QUERY = "--query-gpu=utilization.gpu,memory.used,memory.total"
_APPS = "--query-compute-apps=pid,process_name,used_memory"
_CSV = "--format=csv,noheader,nounits"
_MOST_FILES = 64
_LOGS = "/tmp/ray/session_latest/logs"  # noqa: S108 - where Ray keeps them in a pod
_GREP = (
    "grep -hiE 'NET/OFI|NET/Socket|NET/IB|Using network' "
    f"{_LOGS}/worker*.out {_LOGS}/worker*.err {_LOGS}/job-driver*.log 2>/dev/null | head -n 2000"
)
_EFA_REMEDY = (
    "set NCCL_NET=ofi, and put /opt/amazon/ofi-nccl/lib/x86_64-linux-gnu into LD_LIBRARY_PATH of the pods"
)


def check_gpu_utilization(head_pod: str, namespace: str = DEFAULT_NAMESPACE) -> dict[str, Any]:
    """How busy the GPUs are: of a pod by nvidia-smi, of the cluster's nodes by the head's address.

    `gpu_count`, `gpu_utilizations` (%), `memory_used` and `memory_total` (MB), `processes`,
    `avg_utilization` (0.0 without any GPU) and `healthy`: whether the check succeeded. Ours: `error`. A
    value that a GPU does not tell is None. Raises AccessDenied and PodNotFound.
    """
    head = head_of(head_pod, namespace)
    try:
        rows, processes = _asked_pod(head) if isinstance(head, PodHead) else _asked_nodes(head)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return _gpus([], [], str(error) or "the answer cannot be read")
    return _gpus(rows, processes, "")


def verify_ray_resources(head_pod: str, namespace: str = DEFAULT_NAMESPACE) -> dict[str, Any]:
    """What the cluster has and what of it Ray has given out, by the report behind `ray status`.

    `gpus_available`, `gpus_used`, `cpus_available`, `cpus_used` and `healthy`: whether the check succeeded.
    If it did not, the numbers are None. Raises AccessDenied and PodNotFound.
    """
    names = ("gpus_available", "gpus_used", "cpus_available", "cpus_used")
    answer = head_of(head_pod, namespace).call("GET", "/api/cluster_status")
    try:
        usage = answer.json()["data"]["clusterStatus"]["loadMetricsReport"]["usage"]
        cpus = usage["CPU"]
    except (ValueError, KeyError, TypeError):
        return {**dict.fromkeys(names), "healthy": False, "error": answer.text[:300]}
    gpus = usage.get("GPU") or (0.0, 0.0)
    values = (gpus[1], gpus[0], cpus[1], cpus[0])
    return {**dict(zip(names, map(_whole, values), strict=True)), "healthy": True, "error": None}


def check_efa_utilization(head_pod: str, namespace: str = DEFAULT_NAMESPACE) -> dict[str, Any]:
    """Whether NCCL uses EFA, by what it printed into Ray's logs. It prints that with NCCL_DEBUG=INFO.

    `efa_active`, and `transport`: "efa", "socket", another network's name, or None where no line tells.
    Ours: `healthy` (whether the logs were read), `evidence` (the line) and `remedy`. Raises AccessDenied
    and PodNotFound.
    """
    head = head_of(head_pod, namespace)
    read = _lines_of_pod(head) if isinstance(head, PodHead) else _lines_of_nodes(head)
    found = transport(read or ())
    remedy = None
    if found.word != "efa":
        remedy = _EFA_REMEDY if found.word else f"no line tells: set NCCL_DEBUG=INFO to see; {_EFA_REMEDY}"
    return {
        "efa_active": found.word == "efa",
        "transport": found.word or None,
        "healthy": read is not None,
        "evidence": found.line or None,
        "remedy": remedy,
    }


def get_training_health(
    head_pod: str,
    checkpoint_dir: str | None = None,
    all_pods: Sequence[str] | None = None,
    namespace: str = DEFAULT_NAMESPACE,
) -> dict[str, Any]:
    """GPUs, transport, checkpoints and Ray's resources in one report, and what is wrong with them.

    `healthy` (no issues), `gpu`, `efa`, `checkpoints` (`latest_step`, and ours `latest_path`, `age_s`,
    `passed_over`), `ray` and `issues`. With `all_pods`, `gpu` and `efa` are those of all of them together,
    and ours `pods` has each by itself. Raises AccessDenied and PodNotFound.
    """
    names = list(dict.fromkeys(all_pods or [head_pod]))
    pods = {
        name: {
            "gpu": check_gpu_utilization(name, namespace),
            "efa": check_efa_utilization(name, namespace),
        }
        for name in names
    }
    report = {
        "healthy": False,
        "gpu": _together([pod["gpu"] for pod in pods.values()]),
        "efa": _slowest([pod["efa"] for pod in pods.values()]),
        "checkpoints": _checkpoints(head_of(head_pod, namespace), checkpoint_dir),
        "ray": verify_ray_resources(head_pod, namespace),
        "pods": pods,
    }
    issues = list(_issues(report))
    return {**report, "healthy": not issues, "issues": issues}


def print_training_health(report: dict[str, Any]) -> None:
    """Prints the report of `get_training_health` for people."""
    gpu, efa, ray, saved = report["gpu"], report["efa"], report["ray"], report["checkpoints"]
    rows = (
        ("GPUs", f"{gpu['gpu_count']}, {gpu['avg_utilization']:.0f} % busy" if gpu["healthy"] else "unknown"),
        ("Ray", _given_out(ray)),
        ("transport", efa["transport"] or "unknown"),
        ("checkpoint", f"step {saved['latest_step']}" if saved["latest_path"] else "none"),
    )
    lines = ["healthy" if report["healthy"] else f"{len(report['issues'])} issue(s)"]
    lines += [f"  {name:<12}{value}" for name, value in rows]
    lines += [f"  - {issue}" for issue in report["issues"]]
    sys.stdout.write("\n".join(lines) + "\n")


def _gpus(rows: list[tuple[Any, Any, Any]], processes: list[dict[str, Any]], error: str) -> dict[str, Any]:
    busy = [row[0] for row in rows]
    known = [value for value in busy if value is not None]
    return {
        "gpu_count": len(rows),
        "gpu_utilizations": busy,
        "memory_used": [row[1] for row in rows],
        "memory_total": [row[2] for row in rows],
        "processes": processes,
        "avg_utilization": sum(known) / len(known) if known else 0.0,
        "healthy": not error,
        "error": error or None,
    }


def _asked_pod(head: PodHead) -> tuple[list[tuple[Any, Any, Any]], list[dict[str, Any]]]:
    shown = [head.execute(("nvidia-smi", query, _CSV)) for query in (_QUERY, _APPS)]
    for answer in shown:
        if isinstance(answer, HeadAnswer):
            raise ValueError(answer.error)
    gpus, apps = ([row.split(", ") for row in str(text).splitlines() if row.strip()] for text in shown)
    rows = [(_number(row[0]), _number(row[1]), _number(row[2])) for row in gpus]
    return rows, [{"pid": int(row[0]), "name": row[1], "memory_used": _number(row[2])} for row in apps]


def _asked_nodes(head: HeadAccess) -> tuple[list[tuple[Any, Any, Any]], list[dict[str, Any]]]:
    answer = head.call("GET", "/nodes?view=summary")
    if answer.status != _OK:
        raise ValueError(answer.text)
    gpus = [gpu for node in answer.json()["data"]["summary"] for gpu in node.get("gpus") or ()]
    rows = [(gpu.get("utilizationGpu"), gpu.get("memoryUsed"), gpu.get("memoryTotal")) for gpu in gpus]
    processes = [
        {"pid": process.get("pid"), "name": None, "memory_used": process.get("gpuMemoryUsage")}
        for gpu in gpus
        for process in gpu.get("processesPids") or ()
    ]
    return rows, processes


def _lines_of_pod(head: PodHead) -> list[str] | None:
    answer = head.execute(("sh", "-c", _GREP))
    return None if isinstance(answer, HeadAnswer) else answer.splitlines()


def _lines_of_nodes(head: HeadAccess) -> list[str] | None:
    """The lines of all nodes' workers and drivers; None if no node could be asked."""
    nodes = head.call("GET", "/nodes?view=summary")
    if nodes.status != _OK:
        return None
    lines, started = list[str](), _submissions_by_start(head)
    for node in nodes.json()["data"]["summary"]:
        about = node.get("raylet") or {}
        if about.get("state") != "ALIVE":
            continue
        where = f"/api/v0/logs?node_id={about['nodeId']}"
        drivers = _files(head, f"{where}&glob=job-driver*")
        drivers.sort(key=lambda name: started.get(_submission_of(name), 0), reverse=True)
        names = drivers[: _MOST_FILES // 2]
        names += sorted(_files(head, f"{where}&glob=worker*"), key=_job_of_worker, reverse=True)
        for name in names[:_MOST_FILES]:
            found = head.call(
                "GET", f"{where.replace('logs?', 'logs/file?')}&filename={quote(name)}&lines=-1"
            )
            lines += found.body.decode(errors="replace").splitlines() if found.status == _OK else ()
    return lines


def _submissions_by_start(head: HeadAccess) -> dict[str, float]:
    """When each submission began: a head keeps the drivers' logs of all jobs, and few of them are read."""
    try:
        jobs = head.call("GET", "/api/jobs/").json()
        return {str(job.get("submission_id")): float(job.get("start_time") or 0) for job in jobs}
    except (ValueError, TypeError, AttributeError):
        return {}


def _submission_of(driver_log: str) -> str:
    return driver_log.removeprefix("job-driver-").removesuffix(".log")


def _job_of_worker(name: str) -> str:
    """Ray's number of the job in `worker-WORKER-JOB-PID.out`; jobs are numbered in their order."""
    parts = name.split("-")
    return parts[2] if len(parts) > 3 else ""


def _files(head: HeadAccess, path: str) -> list[str]:
    answer = head.call("GET", path)
    try:
        kinds = answer.json()["data"]["result"] if answer.status == _OK else {}
    except (ValueError, KeyError, TypeError):
        return []
    return [name for names in kinds.values() for name in names if not name.endswith("/")]


def _together(gpus: list[dict[str, Any]]) -> dict[str, Any]:
    """The GPUs of several pods as those of one."""
    keys = ("gpu_utilizations", "memory_used", "memory_total")
    rows = [row for gpu in gpus for row in zip(*(gpu[key] for key in keys), strict=True)]
    processes = [process for gpu in gpus for process in gpu["processes"]]
    return _gpus(rows, processes, "; ".join(gpu["error"] for gpu in gpus if gpu["error"]))


def _slowest(pods: list[dict[str, Any]]) -> dict[str, Any]:
    """What the transport of several pods is: one on TCP sockets slows all of them."""
    by_need = sorted(pods, key=lambda efa: (efa["transport"] != "socket", efa["efa_active"]))
    telling = [efa for efa in by_need if efa["transport"]]
    return (telling or by_need)[0]


def _checkpoints(head: AddressedHead | PodHead, directory: str | None) -> dict[str, Any]:
    if not directory:
        return {"latest_step": None, "latest_path": None, "age_s": None, "passed_over": [], "error": None}
    try:
        found = look(head, directory)
    except AccessDenied as error:
        return {
            "latest_step": None,
            "latest_path": None,
            "age_s": None,
            "passed_over": [],
            "error": str(error),
        }
    here = Path(found.path) if found.path else None
    return {
        "latest_step": found.step,
        "latest_path": found.path or None,
        "age_s": time.time() - here.stat().st_mtime if here and here.exists() else None,
        "passed_over": list(found.passed_over),
        "error": None if found.path else f"no complete checkpoint in {directory}",
    }


def _issues(report: dict[str, Any]) -> Iterator[str]:
    gpu, efa, ray, saved = report["gpu"], report["efa"], report["ray"], report["checkpoints"]
    if not gpu["healthy"]:
        yield f"the GPUs cannot be seen: {gpu['error']}"
    elif gpu["gpu_count"] and not any(gpu["gpu_utilizations"]):
        yield "no GPU does anything"
    if not ray["healthy"]:
        yield f"Ray's resources cannot be seen: {ray['error']}"
    elif ray["gpus_available"] and not ray["gpus_used"]:
        yield f"Ray has {ray['gpus_available']} GPUs and has given out none of them"
    if efa["transport"] == "socket":
        yield (
            "NCCL fell back to TCP sockets, a cause of timeouts in collectives such as ALLGATHER: "
            f"{_EFA_REMEDY}"
        )
    if not efa["healthy"]:
        yield "the logs that tell NCCL's transport cannot be read"
    if saved["error"]:
        yield str(saved["error"])


def _given_out(ray: dict[str, Any]) -> str:
    if not ray["healthy"]:
        return "unknown"
    return (
        f"{ray['gpus_used']} of {ray['gpus_available']} GPUs and "
        f"{ray['cpus_used']} of {ray['cpus_available']} CPUs are in use"
    )


def _number(text: str) -> float | None:
    """The number of a cell of nvidia-smi; None for such as `[N/A]`."""
    try:
        return _whole(float(text))
    except ValueError:
        return None


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value
