"""`midwatch ship`: puts the parts of the sidecar together for one job on one node."""

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
from midwatch.shippers.identity import IdentityArguments, Machine, checkpoint_choice, identify
from midwatch.shippers.messages import reporter
from midwatch.shippers.processes import JobProcess
from midwatch.shippers.sending.exported import exported
from midwatch.shippers.sending.publish import Publisher
from midwatch.shippers.sidecar import DRAIN, Ends, Sidecar
from midwatch.streams.errors import ConfigurationError, UsageError
from midwatch.streams.host.process_table import boot_id, process_status
from midwatch.streams.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class Shipment:
    """The files to ship, and the job that they belong to."""

    paths: tuple[str, ...]
    identity: IdentityArguments
    start: Start = "checkpoint"
    until_pid: bool = False
    """End with the job's process, not only by a signal."""
    drain: float = DRAIN
    state: Path | None = None
    """The shipper's state directory; by default below that of the settings, by job and node."""


def run_ship(shipment: Shipment, settings: Settings, environment: Mapping[str, str] | None = None) -> int:
    """Ships until the job ends: until SIGTERM, or the end of its process with `until_pid`.

    Returns 0 when everything arrived, else 1. It waits for a Kafka that is away.

    Raises:
        UsageError: there is nothing to ship, or another shipper of this job and node runs here.
        ConfigurationError: no job name, no fast checksums, or a state directory that cannot be used.
        ServiceUnreachable: the settings name no Kafka.
    """
    environment = os.environ if environment is None else environment
    if not shipment.paths:
        raise UsageError("no files to ship", where="midwatch ship", remedy="name files, globs or directories")
    arguments = in_cluster(shipment.identity, settings)
    pid = job_pid(arguments, environment)
    if shipment.until_pid and pid is None:
        raise UsageError("no process to wait for", where="--until-pid", remedy="name it: --pid PID")
    this_machine = machine(pid)
    origin = identify(arguments, environment, this_machine)
    report = reporter()
    usual = checkpoint_directory(settings.state_directory, origin.job, origin.node)
    state = ShipperDirectory(shipment.state or usual)
    checkpoint = SentPositions() if shipment.start != "checkpoint" else state.load()
    if checkpoint.boot_id == this_machine.boot_id:
        origin = identify(arguments, environment, this_machine, checkpoint.incarnation)
    source = FollowedFiles(shipment.paths, start=shipment.start, remembered=checkpoint.files, report=report)
    process = JobProcess(pid) if pid is not None else None
    sidecar = Sidecar(
        origin,
        source,
        publisher=Publisher(settings.kafka, settings.topic_names.logs, report),
        state=state,
        settings=settings.ship,
        ends=Ends(process, with_process=shipment.until_pid, drain=shipment.drain),
        report=report,
        checkpoint=checkpoint_choice(environment),
    )
    with exported(settings, origin, lambda: sidecar.facts):
        return sidecar.run()


def job_pid(arguments: IdentityArguments, environment: Mapping[str, str]) -> int | None:
    """The id of the job's process on this node, by `--pid` or MIDWATCH_JOB_PID; None without either.

    Raises:
        ConfigurationError: MIDWATCH_JOB_PID is not a process id.
    """
    text = environment.get("MIDWATCH_JOB_PID")
    if arguments.pid is not None or not text:
        return arguments.pid
    if not text.isdigit():
        raise ConfigurationError(
            f"{text!r} is not a process id", where="MIDWATCH_JOB_PID", remedy="unset it, or use --pid"
        )
    return int(text)


def in_cluster(arguments: IdentityArguments, settings: Settings) -> IdentityArguments:
    """The arguments with the settings' cluster, where the command line names none."""
    named = settings.cluster if settings.cluster != Settings().cluster else None
    return replace(arguments, cluster=arguments.cluster or named)


def machine(pid: int | None) -> Machine:
    """This process and its node."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, in a container
        user = str(os.getuid())
    known = os.getpid() if pid is None else pid
    status = process_status(known)  # of a zombie too: while its entry exists, it identifies the job
    boot = ""
    with contextlib.suppress(OSError):  # a system without /proc
        boot = boot_id()
    return Machine(socket.gethostname(), user, boot, shipper_id(), known, status.start_ticks if status else 0)


def shipper_id() -> str:
    """A new random id for one start of a shipper."""
    return secrets.token_hex(8)


def checkpoint_directory(state_directory: Path, job: str, node: str) -> Path:
    """The directory for the checkpoint of a job's shipper on a node, below the state directory."""
    return state_directory / "ship" / job.replace("/", "_") / node.replace("/", "_")
