"""Starts a training again from its checkpoint: once on request, or whenever it fails or stalls."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from midwatch.agents.training_monitor.activity_log import log
from midwatch.agents.training_monitor.checkpoints import FoundCheckpoint, look, step_of
from midwatch.agents.training_monitor.driver_log import last_step
from midwatch.agents.training_monitor.errors import CheckpointNotFound, JobStillRuns
from midwatch.agents.training_monitor.head.access import JOBS, AddressedHead, PodHead, head_of, read_jobs
from midwatch.agents.training_monitor.head.submissions import (
    CONFIG_KEYS,
    Start,
    named,
    request,
    starts,
    successor,
    training_of_config,
)
from midwatch.agents.training_monitor.head.submitting import submit, unsubmitted
from midwatch.agents.training_monitor.jobs import StallWatch, printed
from midwatch.streams.errors import MidwatchError, UsageError

LONGEST_DELAY_S = 3600.0
"""The delays double up to this one, or stay at `retry_delay` if that is longer."""

_TRIES = 5
_TRY_AGAIN_S = 2.0
_STOP_LOOK_S = 0.5
_PEER_S = 30.0
"""How long another monitor may take from its stop of a start that stalled to the next start."""


def auto_restart(  # noqa: PLR0917 - the signature is that of the skill that it follows
    head_pod: str,
    job_name: str,
    checkpoint_dir: str,
    max_retries: int = 10,
    retry_delay: float = 60,
    stagnation_threshold: float = 300,
    check_interval: float = 30,
) -> dict[str, Any]:
    """Watches a training until it succeeds, and starts it again from its latest checkpoint when it fails.

    `job_name`: a submission id, the `job_name` or `name` in a submission's metadata, or a job of midwatch. A
    job that stalls is stopped first. Retries are counted on the head, so they survive this process. Before
    retry n it waits `retry_delay` times 2 to the power of n - 1, an hour at most.

    Returns `success`, `final_step`, `total_retries` and `reason`. Ours: `job_id`, `status`, `resumed_from`.

    Raises:
        JobNotFound: the head answers and knows no job of that name.
        AccessDenied: the head or Kubernetes refuses us.
    """
    head, logger = head_of(head_pod), log()
    logger.info("watching %s on %s", job_name, head.name)
    training, watch, seen, resumed = "", StallWatch(), "", ""
    peer = _Peer()
    while True:
        jobs = read_jobs(head)
        if jobs is None:
            logger.warning("%s does not answer", head.name)
            time.sleep(check_interval)
            continue
        training = training or named(jobs, job_name, head.name)
        known = starts(jobs, training)
        if not known:
            logger.warning("%s has forgotten %s", head.name, job_name)
            return _result("UNKNOWN", None, None, "the head has forgotten the job", resumed)
        latest = known[-1]
        status, text = str(latest.job.get("status")), printed(head, latest.submission_id)
        if (line := f"{latest.submission_id} is {status} at step {last_step(text)}") != seen:
            logger.info(seen := line)
        if peer.may_have_stopped(latest.submission_id, status, time.monotonic()):
            time.sleep(_STOP_LOOK_S)
            continue
        if status in ("SUCCEEDED", "STOPPED"):
            reason = "completed" if status == "SUCCEEDED" else "somebody stopped it, so it stays stopped"
            return _result(status, latest, text, reason, resumed)
        stalled = status == "RUNNING" and watch.quiet(text, time.monotonic()) >= stagnation_threshold
        if status != "FAILED" and not stalled:
            time.sleep(check_interval)
            continue
        what = f"no progress for {stagnation_threshold:g} s" if stalled else "it failed"
        if latest.retries >= max_retries:
            return _result(status, latest, text, f"{what}, and all {max_retries} retries are used", resumed)
        delay = delay_before(latest.retries + 1, retry_delay)
        logger.warning("%s: %s; retry %d in %g s", latest.submission_id, what, latest.retries + 1, delay)
        peer = _Peer(latest.submission_id if stalled else "")
        time.sleep(delay)
        if _moved_on(head, training, latest, watch if stalled else None):
            continue
        try:
            found = _look_for_checkpoint(head, checkpoint_dir)
            submission = successor(latest, training, found.path, found.step)
            if not (_stopped(head, latest) and _submitted(head, submission)):
                continue
        except UsageError as error:
            return _result(status, latest, text, error.what, resumed)
        watch, resumed = StallWatch(), found.path
        logger.info("started %s from %s", submission["submission_id"], found.path or "the beginning")


def submit_job_with_resume(head_pod: str, checkpoint_path: str, config: Mapping[str, Any]) -> str:
    """Submits a job that resumes from a checkpoint, and returns its id.

    `config` has `entrypoint`, and optionally `runtime_env`, `metadata`, `job_name` and the resources
    `entrypoint_num_cpus`, `entrypoint_num_gpus`, `entrypoint_memory` and `entrypoint_resources`. The job
    reads `MIDWATCH_RESUME_FROM` and `MIDWATCH_RESUME_STEP`. `{checkpoint}` and `{step}` in the entrypoint
    are filled.

    `resumes`: the id of the ended job that this one continues. Without it, the same configuration and
    checkpoint directory are one training. While a start of that lives, its id comes back and none is made.

    Raises:
        UsageError: the configuration lacks the entrypoint, has a key of no meaning, or Ray refuses it.
        CheckpointNotFound: no path was given.
        JobNotFound, JobStillRuns: the job that `resumes` names is unknown, or has not ended.
        HeadUnreachable: the head did not confirm the submission.
    """
    _check(config, checkpoint_path)
    head = head_of(head_pod)
    jobs = _listed(head)
    path = str(checkpoint_path)
    resumes = str(config.get("resumes") or "")
    if resumes:
        training = named(jobs, resumes, head.name)
    else:
        training = training_of_config(config, str(PurePath(path).parent))
    known = starts(jobs, training)
    if known and known[-1].live:
        if resumes:
            raise JobStillRuns(
                f"{known[-1].submission_id} still runs", where=head.name, remedy="stop it, then call again"
            )
        log().info("%s runs already", known[-1].submission_id)
        return known[-1].submission_id
    attempt = known[-1].attempt if known else 1
    inherited = (known[-1].job.get("metadata") or {}) if resumes else {}
    settings = {**config, "metadata": {**inherited, **(config.get("metadata") or {})}}
    submission = request(settings, training, attempt, path, step_of(path))
    if not _submitted(head, submission):
        raise unsubmitted(head, submission["submission_id"])
    log().info("submitted %s from %s", submission["submission_id"], path)
    return str(submission["submission_id"])


class _Peer:
    """Another monitor of the same training, which may stop a start that stalled before this one does.

    A person's stop looks alike. So a stop of that start counts as a person's once no next start has come.
    """

    def __init__(self, stalled: str = "") -> None:
        self._stalled = stalled
        self._since: float | None = None

    def may_have_stopped(self, submission: str, status: str, now: float) -> bool:
        """Whether the next start may still come, because another monitor stopped this one."""
        if not self._stalled or submission != self._stalled or status != "STOPPED":
            return False
        self._since = now if self._since is None else self._since
        return now - self._since < _PEER_S


def delay_before(retry: int, retry_delay: float) -> float:
    """Seconds to wait before this retry, the first being 1."""
    return float(min(retry_delay * 2.0 ** min(retry - 1, 60), max(LONGEST_DELAY_S, retry_delay)))


def _result(status: str, start: Start | None, text: str | None, reason: str, resumed: str) -> dict[str, Any]:
    log().info("%s: %s", start.submission_id if start else "no job", reason)
    return {
        "success": status == "SUCCEEDED",
        "final_step": last_step(text) if text else None,
        "total_retries": start.retries if start else 0,
        "reason": reason,
        "job_id": start.submission_id if start else None,
        "status": status,
        "resumed_from": resumed or None,
    }


def _moved_on(
    head: AddressedHead | PodHead, training: str, latest: Start, stalled: StallWatch | None
) -> bool:
    """Whether another start exists by now, this one ended otherwise, or a job that stalled goes on."""
    jobs = read_jobs(head)
    if jobs is None:
        return True
    now = starts(jobs, training)
    if not now or now[-1].submission_id != latest.submission_id:
        return True
    if now[-1].job.get("status") != latest.job.get("status"):
        return True
    return stalled is not None and not stalled.quiet(printed(head, latest.submission_id), time.monotonic())


def _stopped(head: AddressedHead | PodHead, latest: Start) -> bool:
    """Stops a start that still runs, and waits until Ray calls it ended: the answer to a stop is no proof."""
    path = JOBS + quote(latest.submission_id, safe="")
    if latest.live:
        log().warning("stopping %s", latest.submission_id)
        head.call("POST", f"{path}/stop")
    for _ in range(round(120 / _STOP_LOOK_S)):
        jobs = read_jobs(head) or ()
        found = [job for job in jobs if job["submission_id"] == latest.submission_id]
        if found and found[0].get("status") not in ("PENDING", "RUNNING"):
            return found[0].get("status") in ("FAILED", "STOPPED")
        time.sleep(_STOP_LOOK_S)
    return False


def _submitted(head: AddressedHead | PodHead, submission: Mapping[str, Any]) -> bool:
    for attempt in range(_TRIES):
        if submit(head, submission):
            return True
        if attempt < _TRIES - 1:
            time.sleep(_TRY_AGAIN_S)
    return False


def _listed(head: AddressedHead | PodHead) -> list[dict[str, Any]]:
    for _ in range(_TRIES):
        if (jobs := read_jobs(head)) is not None:
            return jobs
        time.sleep(_TRY_AGAIN_S)
    raise unsubmitted(head, "of the job")


def _look_for_checkpoint(head: AddressedHead | PodHead, directory: str) -> FoundCheckpoint:
    """The checkpoint to resume from. Without a complete one the training begins anew, and the log says so."""
    try:
        found = look(head, directory)
    except MidwatchError as error:
        log().error("%s", error)
        raise UsageError(error.what, where=error.where, remedy=error.remedy) from error
    for reason in found.passed_over:
        log().warning("passed over a checkpoint: %s", reason)
    if not found.path:
        log().warning("%s", CheckpointNotFound.of(directory, found.passed_over))
    return found


def _check(config: Mapping[str, Any], checkpoint_path: str) -> None:
    if unknown := sorted(set(config) - set(CONFIG_KEYS)):
        raise UsageError(
            f"config has no key {unknown[0]!r}", where="config", remedy=f"use {', '.join(CONFIG_KEYS)}"
        )
    if not config.get("entrypoint"):
        raise UsageError("config has no entrypoint", where="config", remedy="name the command to run")
    if not checkpoint_path:
        raise CheckpointNotFound.of("(no path)")
