"""The configuration files of a lab cluster: one host that poses as several nodes."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything of one lab lies and listens."""

    directory: Path
    controller_port: int
    node_ports: tuple[int, ...]
    accounting_port: int = 0  # 0: no slurmdbd

    @property
    def conf(self) -> Path:
        return self.directory / "slurm.conf"

    @property
    def munge_socket(self) -> Path:
        return self.directory / "munge.sock"

    def node(self, index: int) -> str:
        return f"n{index}"


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; short ones, so that tests need not wait for what takes minutes on a real site."""

    message_timeout: int = 5
    min_job_age: int = 300
    slurmd_timeout: int = 10
    kill_wait: int = 2
    credential_expires: int = 5  # a requeued job starts again only after this


def write(layout: Layout, timing: Timing) -> None:
    """Writes slurm.conf and cgroup.conf."""
    host, last = socket.gethostname().split(".")[0], len(layout.node_ports) - 1
    directory = layout.directory
    lines = [
        "ClusterName=lab",
        f"SlurmctldHost={host}(127.0.0.1)",
        f"SlurmctldPort={layout.controller_port}",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        f"AuthInfo=socket={layout.munge_socket},cred_expire={timing.credential_expires}",
        "CredType=cred/munge",
        "MpiDefault=none",
        "ProctrackType=proctrack/linuxproc",  # no cgroups in a container
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        "SwitchType=switch/none",
        "SchedulerType=sched/backfill",
        "SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,batch_sched_delay=0",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "ReturnToService=2",
        f"StateSaveLocation={directory}/state",
        f"SlurmdSpoolDir={directory}/spool/%n",
        f"SlurmctldPidFile={directory}/slurmctld.pid",
        f"SlurmdPidFile={directory}/slurmd.%n.pid",
        f"SlurmctldLogFile={directory}/log/slurmctld.log",
        f"SlurmdLogFile={directory}/log/slurmd.%n.log",
        "SlurmctldTimeout=10",
        f"SlurmdTimeout={timing.slurmd_timeout}",
        f"MessageTimeout={timing.message_timeout}",
        "InactiveLimit=0",
        f"KillWait={timing.kill_wait}",
        f"MinJobAge={timing.min_job_age}",
        "CompleteWait=0",
        "JobRequeue=1",
        "MailProg=/bin/true",
        "SlurmdParameters=config_overrides",  # a small host may claim more CPUs than it has
        *_accounting(layout, host),
        *(
            f"NodeName={layout.node(i)} NodeHostname={host} NodeAddr=127.0.0.1 Port={port}"
            " CPUs=8 SocketsPerBoard=1 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=4000 State=UNKNOWN"
            for i, port in enumerate(layout.node_ports)
        ),
        f"PartitionName=train Nodes=n[0-{last}] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO",
    ]
    layout.conf.write_text("\n".join(lines) + "\n")


def write_cgroup(layout: Layout, major_version: int) -> None:
    """Without this file a slurmd of 23 or newer dies where there is no cgroup file system."""
    line = "CgroupPlugin=disabled" if major_version >= 23 else "CgroupAutomount=no"
    (layout.directory / "cgroup.conf").write_text(line + "\n")


def _accounting(layout: Layout, host: str) -> list[str]:
    if not layout.accounting_port:
        return ["AccountingStorageType=accounting_storage/none"]
    return [
        "AccountingStorageType=accounting_storage/slurmdbd",
        f"AccountingStorageHost={host}",
        f"AccountingStoragePort={layout.accounting_port}",
        f"AccountingStoragePass={layout.munge_socket}",
        "AccountingStoreFlags=job_comment",
    ]


def write_accounting(layout: Layout) -> Path:
    """Writes slurmdbd.conf; the daemon refuses one that others can read, and takes MYSQL_UNIX_PORT."""
    path = layout.directory / "slurmdbd.conf"
    host = socket.gethostname().split(".")[0]
    path.write_text(
        f"AuthType=auth/munge\nAuthInfo=socket={layout.munge_socket}\nDbdHost={host}\nDbdAddr=127.0.0.1\n"
        f"DbdPort={layout.accounting_port}\nSlurmUser=root\nLogFile={layout.directory}/log/slurmdbd.log\n"
        f"PidFile={layout.directory}/slurmdbd.pid\nStorageType=accounting_storage/mysql\nStorageUser=root\n"
        f"StorageLoc=slurm_acct\nStorageHost=localhost\n"
    )
    path.chmod(0o600)
    return path
