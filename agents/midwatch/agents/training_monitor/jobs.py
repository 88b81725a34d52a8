"""Looks at one job of a head: its status, its step, whether it stalls, and how it ends."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from midwatch.agents.training_monitor.activity_log import log
from midwatch.agents.training_monitor.driver_log import last_step, last_throughput
from midwatch.agents.training_monitor.errors import JobNotFound
from midwatch.agents.training_monitor.head.access import HeadAccess, head_of, read_job, read_log

UNKNOWN = "UNKNOWN"
ENDED = ("SUCCEEDED", "FAILED", "STOPPED")
_SHOWN = ("RUNNING", "FAILED", "SUCCEEDED", "PENDING")


@dataclass(slots=True)
class StallWatch:
    """Since when a job has made no progress. Of a job whose steps nobody can read, any output counts."""

    seen: tuple[str, int] | None = None
    since: float = 0.0

    def quiet(self, text: str, now: float) -> float:
        """Seconds without progress, once the log's present text was seen."""
        step = last_step(text)
        seen = ("step", step) if step is not None else ("characters", len(text))
        if seen != self.seen:
            self.seen, self.since = seen, now
        return now - self.since


_watches: dict[tuple[str, str], StallWatch] = {}
_lock = threading.Lock()


def check_job_status(head_pod: str, job_id: str) -> str:
    """RUNNING, FAILED, SUCCEEDED, PENDING, or UNKNOWN.

    UNKNOWN: the head does not answer, or says another word, such as STOPPED for a job that somebody stopped.

    Raises:
        JobNotFound: the head answers and knows no such job.
        AccessDenied: the head or Kubernetes refuses us.
    """
    job = read_job(head_of(head_pod), job_id)
    status = str(job.get("status")) if job else UNKNOWN
    return status if status in _SHOWN else UNKNOWN


def get_current_step(head_pod: str, job_id: str) -> int | None:
    """The step that the job's driver printed last; None if it printed none, or the head does not answer.

    Raises as `check_job_status`.
    """
    text = read_log(head_of(head_pod), job_id)
    return None if text is None else last_step(text)


def detect_stall(head_pod: str, job_id: str, stagnation_threshold: float = 300) -> bool:
    """Whether a running job has made no progress for so many seconds.

    This process counts, from its first look at the present step. So call it more than once. A head that
    does not answer proves no stall. Raises as `check_job_status`.
    """
    head = head_of(head_pod)
    job = read_job(head, job_id)
    if job is None:
        return False
    with _lock:
        if job.get("status") != "RUNNING":
            _watches.pop((head.name, job_id), None)
            return False
    text = read_log(head, job_id)
    if text is None:
        return False
    with _lock:
        watch = _watches.setdefault((head.name, job_id), StallWatch())
        return watch.quiet(text, time.monotonic()) >= stagnation_threshold


def monitor_job(
    head_pod: str, job_id: str, check_interval: float = 30, timeout: float | None = None
) -> dict[str, Any]:
    """Watches a job until it ends or `timeout` seconds are over, and restarts nothing.

    Returns `status` (Ray's word, UNKNOWN if the head did not answer), `duration` (seconds of this watch) and
    `final_step`. Ours: `job_id`, `throughput`, `message` and `timed_out`. Raises as `check_job_status`.
    """
    head, began, shown = head_of(head_pod), time.monotonic(), ""
    while True:
        job = read_job(head, job_id)
        status = str(job.get("status") or UNKNOWN) if job else UNKNOWN
        text = read_log(head, job_id) if job else None
        step = last_step(text) if text else None
        if (line := f"{job_id} is {status} at step {step}") != shown:
            log().info(shown := line)
        watched = time.monotonic() - began
        over = timeout is not None and watched >= timeout
        if status in ENDED or over:
            rate = last_throughput(text) if text else None
            return {
                "status": status,
                "duration": watched,
                "final_step": step,
                "job_id": job_id,
                "throughput": {"value": rate.value, "unit": rate.unit} if rate else None,
                "message": (job or {}).get("message") or None,
                "timed_out": status not in ENDED,
            }
        rest = check_interval if timeout is None else min(check_interval, timeout - watched)
        time.sleep(rest)


def printed(head: HeadAccess, job_id: str) -> str:
    """What the driver has printed; "" if that cannot be read now."""
    try:
        return read_log(head, job_id) or ""
    except JobNotFound:
        return ""
