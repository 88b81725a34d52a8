"""`midwatch ship --ray`: the driver logs of a head, one shipper for each job that midwatch started there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from midwatch.shippers.files.sent_positions import SentPositions, ShipperDirectory
from midwatch.shippers.identity import IdentityArguments, identify
from midwatch.shippers.messages import Report, reporter
from midwatch.shippers.ray.driver_log import DriverJob, DriverLog, DriverLogFile
from midwatch.shippers.sending.publish import Publisher
from midwatch.shippers.ship import checkpoint_directory, in_cluster, machine
from midwatch.shippers.sidecar import DRAIN, Ends, Sidecar
from midwatch.streams.errors import ConfigurationError, ServiceUnreachable, UsageError
from midwatch.streams.records.identity import ray_incarnation
from midwatch.streams.services.ray_jobs import JOB_METADATA, LIVE, SIDECAR_METADATA, RayHead, call
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.readiness import declare_ready

NODE = "driver"
"""The node of all driver logs: a driver may run anywhere in the cluster."""

_CALL_S = 10.0
_LOOK_S, _STEP_S = 1.0, 0.1
_RECENT_S = 600.0
_AGAIN_S = 5.0


@dataclass(frozen=True, slots=True)
class HeadJob:
    """One submission of midwatch, as the head shows it. `ended`: seconds since 1970, None while it lives."""

    submission: str
    session: str
    job: str
    ended: float | None = None

    @property
    def incarnation(self) -> str:
        return ray_incarnation(self.submission, self.session)


def ship_driver_log(head: RayHead, submission: str, identity: IdentityArguments, settings: Settings) -> int:
    """Ships the log of one driver until its job has ended. Returns 0 when everything arrived, else 1.

    Raises:
        UsageError: the head has no such job, or another shipper of it runs here.
        ServiceUnreachable: the head does not answer, or the settings name no Kafka.
    """
    found = next((each for each in jobs_of(head, everything=True) if each.submission == submission), None)
    if found is None:
        raise UsageError(
            f"the head has no submission {submission}", where=head.address, remedy="see `ray job list`"
        )
    job = identity.job or found.job or submission
    variables = {"MIDWATCH_INCARNATION": found.incarnation, "MIDWATCH_NODE": NODE}
    here = machine(None)
    arguments = in_cluster(IdentityArguments(job=job, node=identity.node, cluster=identity.cluster), settings)
    arguments = IdentityArguments(job=job, node=identity.node, cluster=arguments.cluster or "ray")
    origin = identify(arguments, variables, here)
    state = ShipperDirectory(
        checkpoint_directory(settings.state_directory, origin.job, f"{NODE}-{submission}")
    )
    checkpoint = state.load()
    if checkpoint.incarnation not in ("", origin.incarnation):
        checkpoint = SentPositions()
    report = reporter()
    file = (
        checkpoint_directory(settings.state_directory, origin.job, NODE).parent
        / f"{found.session}-{submission}.log"
    )
    log = DriverLog(head, submission, file, report)
    log.start()
    return Sidecar(
        origin,
        DriverLogFile(log, file, "checkpoint", checkpoint.files),
        publisher=Publisher(settings.kafka, settings.topic_names.logs, report),
        state=state,
        settings=settings.ship,
        ends=Ends(DriverJob(log), drain=DRAIN),
        report=report,
    ).run()


def ship_head(head: RayHead, state_directory: Path, arguments: Sequence[str]) -> int:
    """Ships the driver logs of all jobs that midwatch starts on this head, until SIGTERM.

    Each job has a process of its own; `arguments` are its command line but for the submission. One that dies
    is started again. A job whose entrypoint has a sidecar is left to it.
    """
    report, stopping = reporter(), list[int]()
    pauses: dict[str, float] = {}
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda n, _: stopping.append(n))
    declare_ready(state_directory, "ship-ray")
    shippers: dict[str, subprocess.Popen[bytes]] = {}
    done: set[str] = set()
    trouble = ""
    while not stopping:
        try:
            for each in jobs_of(head):
                _keep_shipping(each, shippers, done, pauses, arguments)
            trouble = ""
        except ServiceUnreachable as error:
            trouble = _once(report, str(error), trouble)
        _sleep(stopping)
    for shipper in (*shippers.values(), *shippers.values()):
        shipper.terminate()  # the second one: do not wait for the end of a job that goes on
        time.sleep(_STEP_S)
    for shipper in shippers.values():
        shipper.wait()
    return 0


def jobs_of(head: RayHead, *, everything: bool = False) -> Iterator[HeadJob]:
    """The submissions of midwatch that live or ended lately; with `everything`, all submissions.

    Raises:
        ServiceUnreachable: the head does not answer.
    """
    session = _read(head, "/api/version").get("session_name", "")
    for job in _read(head, "/api/jobs/"):
        metadata = job.get("metadata") or {}
        submission = job.get("submission_id")
        ended = None if job.get("status") in LIVE else (job.get("end_time") or 0) / 1000
        ours = JOB_METADATA in metadata and SIDECAR_METADATA not in metadata
        lately = ended is None or time.time() - ended < _RECENT_S
        if submission and (everything or (ours and lately)):
            yield HeadJob(submission, session, metadata.get(JOB_METADATA, ""), ended)


def _keep_shipping(
    job: HeadJob,
    shippers: dict[str, subprocess.Popen[bytes]],
    done: set[str],
    pauses: dict[str, float],
    arguments: Sequence[str],
) -> None:
    shipper = shippers.get(job.incarnation)
    if job.incarnation in done or (shipper is not None and shipper.poll() is None):
        return
    if shipper is not None:
        shippers.pop(job.incarnation)
        if shipper.returncode == 0:
            done.add(job.incarnation)
            return
        pauses[job.incarnation] = time.monotonic() + _AGAIN_S
    if pauses.get(job.incarnation, 0.0) > time.monotonic():
        return
    argv = [sys.executable, "-P", "-m", "midwatch", "ship", *arguments, f"--submission-id={job.submission}"]
    shippers[job.incarnation] = subprocess.Popen(argv, env=dict(os.environ), start_new_session=True)


def _read(head: RayHead, path: str) -> Any:
    answer = call(head, "GET", path, timeout=_CALL_S)
    try:
        if answer.status == 200:
            return answer.json()
        why = answer.text
    except ValueError:
        why = "its answer is no JSON"
    raise ServiceUnreachable(
        f"the Ray head gave no usable answer: {why}",
        where=head.address,
        remedy="check `ray status` there, ray.address and ray.token_file",
    )


def head_of(address: str, settings: Settings) -> RayHead:
    """The head of the settings. Raises ConfigurationError for another one, which must not see the token."""
    if address and address.rstrip("/") != settings.ray.address:
        raise ConfigurationError(
            f"the settings name {settings.ray.address or 'no Ray head'}",
            where=f"--ray {address}",
            remedy=f"set ray.address: {address}",
        )
    return RayHead(settings.ray.address, settings.ray.token.reveal())


def _once(report: Report, text: str, before: str) -> str:
    if text != before:
        report(text)
    return text


def _sleep(stopping: list[int]) -> None:
    until = time.monotonic() + _LOOK_S
    while not stopping and time.monotonic() < until:
        time.sleep(_STEP_S)
