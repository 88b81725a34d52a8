"""Ship files: put the parts of the sidecar together for one job on one node."""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from midwatch.shippers.files.followed import FollowedFiles, Start
from midwatch.shippers.files.sent_positions import SentPositions, ShipperDirectory
from midwatch.shippers.identity import IdentityArguments, Machine, identify
from midwatch.shippers.messages import reporter
from midwatch.shippers.processes import JobProcess
from midwatch.shippers.sending.publish import Publisher
from midwatch.shippers.sidecar import DRAIN, Ends, Sidecar
from midwatch.streams.errors import ConfigurationError, UsageError
from midwatch.streams.host.process_table import boot_id, process_status
from midwatch.streams.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class Shipment:
    """What to ship, and for whom."""

    paths: tuple[str, ...]
    told: IdentityArguments
    start: Start = "checkpoint"
    until_pid: bool = False
    """End with the job's process, not only when told."""
    drain: float = DRAIN
    state: Path | None = None
    """Where the checkpoint is; else below the settings' state directory, by job and node."""


def run_ship(shipment: Shipment, settings: Settings, environment: Mapping[str, str] | None = None) -> int:
    """Ships until the job ends (SIGTERM, or its process with `until_pid`): 0 when everything arrived, else 1.

    Raises:
        UsageError: there is nothing to ship, or another shipper of this job and node runs here.
        ConfigurationError: no job name, no fast checksums, or a state directory that cannot be used.
        ServiceUnreachable: no Kafka is given. One that is away is waited for.
    """
    environment = os.environ if environment is None else environment
    if not shipment.paths:
        raise UsageError("no files to ship", where="midwatch ship", remedy="name files, globs or directories")
    told = in_cluster(shipment.told, settings)
    pid = job_pid(told, environment)
    if shipment.until_pid and pid is None:
        raise UsageError("no process to wait for", where="--until-pid", remedy="name it: --pid PID")
    me = machine(pid)
    origin = identify(told, environment, me)
    report = reporter()
    usual = checkpoint_directory(settings.state_directory, origin.job, origin.node)
    state = ShipperDirectory(shipment.state or usual)
    checkpoint = SentPositions() if shipment.start != "checkpoint" else state.load()
    if checkpoint.boot_id == me.boot_id:
        origin = identify(told, environment, me, checkpoint.incarnation)
    source = FollowedFiles(shipment.paths, start=shipment.start, remembered=checkpoint.files, report=report)
    process = JobProcess(pid) if pid is not None else None
    return Sidecar(
        origin,
        source,
        publisher=Publisher(settings.kafka, settings.topic_names.logs, report),
        state=state,
        settings=settings.ship,
        ends=Ends(process, with_process=shipment.until_pid, drain=shipment.drain),
        report=report,
    ).run()


def job_pid(told: IdentityArguments, environment: Mapping[str, str]) -> int | None:
    """The process that the job is on this node, if anybody says so.

    Raises:
        ConfigurationError: MIDWATCH_JOB_PID is no process id.
    """
    text = environment.get("MIDWATCH_JOB_PID")
    if told.pid is not None or not text:
        return told.pid
    if not text.isdigit():
        raise ConfigurationError(
            f"{text!r} is no process id", where="MIDWATCH_JOB_PID", remedy="unset it, or use --pid"
        )
    return int(text)


def in_cluster(told: IdentityArguments, settings: Settings) -> IdentityArguments:
    """With the settings' cluster, where they name one and the command line does not."""
    named = settings.cluster if settings.cluster != Settings().cluster else None
    return replace(told, cluster=told.cluster or named)


def machine(pid: int | None) -> Machine:
    """This process and its node."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = str(os.getuid())
    known = os.getpid() if pid is None else pid
    status = process_status(known)  # of a dead one too: it is the job's name as long as it is there
    boot = ""
    with contextlib.suppress(OSError):  # a system without /proc
        boot = boot_id()
    return Machine(socket.gethostname(), user, boot, shipper_id(), known, status.start_ticks if status else 0)


def shipper_id() -> str:
    """Unique to one start of a shipper."""
    return secrets.token_hex(8)


def checkpoint_directory(state_directory: Path, job: str, node: str) -> Path:
    """Where the shipper of a job on a node keeps its checkpoint, below the installation's state directory."""
    return state_directory / "ship" / job.replace("/", "_") / node.replace("/", "_")
