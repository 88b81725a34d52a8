"""Ray through its Jobs API over HTTP. Neither this driver nor its process imports Ray.

The submission id is the effect key, and Ray refuses a second job of the same id, so a duplicate never starts.
A head that was restarted without its Redis forgets its ids. Its session then has another name, and the
executor's own claim keeps a start from being made twice.

An answer to a stop proves nothing: a pending job may still start for a moment. The job's final status does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from midwatch.agents.schedulers.base import (
    ClusterUnreachable,
    Hint,
    SchedulerEpoch,
    SchedulerJob,
    StartSpec,
    StartState,
    Sweep,
)
from midwatch.agents.schedulers.calls import Caller
from midwatch.agents.schedulers.ray import states
from midwatch.agents.schedulers.ray.packages import restore
from midwatch.agents.schedulers.ray.submission import body
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.records.identity import native_id
from midwatch.streams.services.ray_jobs import GPUS_METADATA, HeadAnswer, RayHead

LOOK_S = 10.0
ACT_S = 20.0
_JOBS = "/api/jobs/"
_OK, _BAD_REQUEST, _ABSENT = 200, 400, 404
_EXISTS = "already exists"


class RayCluster:
    """One Ray head. It cannot hold a job: what is submitted runs as soon as there is room."""

    kind = "ray"
    holds = False

    def __init__(self, name: str, head: RayHead, caller: Caller, *, python: str = "python") -> None:
        """`python`: the interpreter that runs the shim on the cluster's nodes, where a job asks for it."""
        self.name = name
        self._head = head
        self._caller = caller
        self._python = python

    def sweep(self) -> Sweep:
        session = self._session()
        jobs = self._jobs()
        if self._session() != session:
            raise self._unreachable("the head was restarted between two answers")
        found = states.sweep(jobs, session)
        holding = {job["submission_id"]: job for job in jobs if states.holds_gpus(job)}
        short = states.gpus_short(self._status()) if holding else ""
        if short:
            gpus = {name: job["metadata"][GPUS_METADATA] for name, job in holding.items()}
            found = tuple(
                states.held(job, short, gpus[job.native_id]) if job.native_id in gpus else job
                for job in found
            )
        return Sweep(found)

    def find(self, effect_key: str) -> tuple[SchedulerJob, ...]:
        return self.sweep().carrying(effect_key)

    def epoch(self) -> SchedulerEpoch:
        return SchedulerEpoch(self._session(), 0.0)

    def state(self, incarnation: str) -> StartState:
        try:
            job = self._job(incarnation)
        except ClusterUnreachable as error:
            return StartState("unknown", reason=error.what)
        return job.state if job is not None else StartState("absent")

    def submit_held(self, spec: StartSpec, effect_key: str, after: str = "") -> Hint:  # noqa: ARG002 - it cannot wait
        if not states.SUBMISSION_ID.fullmatch(effect_key):
            return Hint("refused", f"{effect_key!r} cannot be a submission id")
        try:
            wanted, packages = body(spec, effect_key, self._python)
            restored = [restore(self._call, package) for package in packages]
        except ConfigurationError as error:
            return Hint("refused", error.in_one_line)
        if unclear := next((hint for hint in restored if hint.result != "done"), None):
            return unclear
        answer = self._call("POST", _JOBS, json.dumps(wanted).encode(), ACT_S)
        if answer.status == _OK or _EXISTS in answer.body.decode(errors="replace"):
            return Hint("done", effect_key)
        if answer.status == _BAD_REQUEST:
            return Hint("refused", f"Ray refused the job: {answer.text}")
        return Hint("unsent" if answer.unsent else "unclear", answer.text)

    def retire(self, effect_key: str, before: str) -> None:
        """Deletes an ended job of this id if it began before the start `before`, which frees the id."""
        try:
            job, newer = self._job(f"ray:{effect_key}:{states.ANY_SESSION}"), self._job(before)
        except ClusterUnreachable:
            return
        if job is None or newer is None or not (job.state.over and job.effect_key):
            return
        if int(job.started or 0) < int(newer.started or 0):
            self._call("DELETE", _JOBS + effect_key, None, ACT_S)

    def release(self, incarnation: str, effect_key: str) -> Hint:  # noqa: ARG002 - nothing is ever held here
        return Hint("done")

    def cancel(self, incarnation: str, effect_key: str = "", *, force: bool = False) -> Hint:  # noqa: ARG002 - Ray itself kills what ignores SIGTERM
        """Ray sends SIGTERM, and SIGKILL after RAY_JOB_STOP_WAIT_TIME_S of the job's variables, else 3 s."""
        try:
            job = self._job(incarnation)
        except ClusterUnreachable as error:
            return Hint("unclear", error.what)
        if job is None:
            return Hint("refused", f"this run of the head does not know {incarnation}")
        if effect_key and job.effect_key != effect_key:
            return Hint("refused", f"{job.native_id} does not carry the key {effect_key}")
        answer = self._call("POST", f"{_JOBS}{job.native_id}/stop", None, ACT_S)
        return Hint("done" if answer.status == _OK else "unclear", answer.text)

    def _job(self, incarnation: str) -> SchedulerJob | None:
        """The job of this start; None if this run of the head does not know it."""
        submission, session = native_id(incarnation), incarnation.split(":", 2)[2]
        present = self._session()
        if session not in (present, states.ANY_SESSION) or not states.SUBMISSION_ID.fullmatch(submission):
            return None
        answer = self._call("GET", _JOBS + submission, None, LOOK_S)
        if answer.status == _ABSENT:
            return None
        return states.scheduler_job(self._read(answer, dict), present)

    def _jobs(self) -> list[Mapping[str, Any]]:
        jobs: list[Mapping[str, Any]] = self._read(self._call("GET", _JOBS, None, LOOK_S), list)
        return jobs

    def _status(self) -> Mapping[str, Any]:
        """The cluster's resources; empty if the head does not tell them, for they decide nothing."""
        answer = self._call("GET", "/api/cluster_status", None, LOOK_S)
        try:
            found = answer.json() if answer.status == _OK else {}
        except ValueError:
            found = {}
        return found if isinstance(found, dict) else {}

    def _session(self) -> str:
        """The name of this run of the head. A head that kept its Redis keeps its name."""
        answer = self._read(self._call("GET", "/api/version", None, LOOK_S), dict)
        session = answer.get("session_name")
        if not isinstance(session, str) or not session or ":" in session:
            raise self._unreachable("it does not name its session")
        return session

    def _read(self, answer: HeadAnswer, shape: type) -> Any:
        if answer.status != _OK:
            raise self._unreachable(
                f"status {answer.status}, {answer.text}" if answer.status else answer.text
            )
        try:
            found = answer.json()
        except ValueError:
            raise self._unreachable("its answer is no JSON") from None
        if not isinstance(found, shape):
            raise self._unreachable(f"its answer is a {type(found).__name__}")
        return found

    def _call(self, method: str, path: str, content: bytes | None, timeout: float) -> HeadAnswer:
        return self._caller.request(self._head, method, path, content, timeout=timeout)

    def _unreachable(self, why: str) -> ClusterUnreachable:
        return ClusterUnreachable(
            f"the Ray head gave no usable answer: {why}",
            where=self._head.address,
            remedy="check `ray status` there, ray.address and ray.token_file; midwatch tries again by itself",
        )


def kept_folder(state_directory: Path) -> Path:
    """Where submissions and their packages are kept."""
    return state_directory / "submissions"
