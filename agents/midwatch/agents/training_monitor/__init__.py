"""Watches and restarts training jobs on Ray from a Python program, without Kafka and without `midwatch up`.

`head_pod` is the address of a head's dashboard, such as `http://head:8265`, or the name of its pod. A pod is
reached by kubectl; write `namespace/pod` where a function has no `namespace`. It needs the standard library
only. docs/training-monitor.md shows it.
"""

from __future__ import annotations

from midwatch.agents.training_monitor.checkpoints import find_latest_checkpoint
from midwatch.agents.training_monitor.errors import (
    AccessDenied,
    CheckpointNotFound,
    HeadUnreachable,
    JobNotFound,
    JobStillRuns,
    PodNotFound,
)
from midwatch.agents.training_monitor.health import (
    check_efa_utilization,
    check_gpu_utilization,
    get_training_health,
    print_training_health,
    verify_ray_resources,
)
from midwatch.agents.training_monitor.jobs import (
    check_job_status,
    detect_stall,
    get_current_step,
    monitor_job,
)
from midwatch.agents.training_monitor.restart import auto_restart, submit_job_with_resume

__all__ = [
    "AccessDenied",
    "CheckpointNotFound",
    "HeadUnreachable",
    "JobNotFound",
    "JobStillRuns",
    "PodNotFound",
    "auto_restart",
    "check_efa_utilization",
    "check_gpu_utilization",
    "check_job_status",
    "detect_stall",
    "find_latest_checkpoint",
    "get_current_step",
    "get_training_health",
    "monitor_job",
    "print_training_health",
    "submit_job_with_resume",
    "verify_ray_resources",
]
