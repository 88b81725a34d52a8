"""slurmdbd with its database, for what only accounting knows: who cancelled, and jobs that left memory."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from slurm_lab.conf import write_accounting

if TYPE_CHECKING:
    from slurm_lab.lab import Lab


class Accounting:
    """The two daemons behind sacct, as part of a lab."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def boot(self) -> None:
        lab, data = self.lab, self.lab.layout.directory / "database"
        socket = data / "mysql.sock"
        flags = ["--no-defaults", "--user=mysql", f"--datadir={data}"]
        data.mkdir()
        shutil.chown(data, "mysql")
        lab.run("mariadb-install-db", *flags, "--skip-test-db", "--auth-root-authentication-method=normal")
        lab.start("mariadbd", "mariadbd", *flags, f"--socket={socket}", "--skip-networking")
        lab.wait(lambda: self._sql(socket, "select 1"), "the database")
        self._sql(socket, "create database slurm_acct")
        write_accounting(lab.layout)
        lab.start("slurmdbd", "slurmdbd", "-D", environment={"MYSQL_UNIX_PORT": str(socket)})
        lab.wait(lambda: lab.run("sacctmgr", "-n", "show", "cluster").returncode == 0, "slurmdbd")
        lab.run("sacctmgr", "-i", "add", "cluster", "lab")
        lab.wait(lambda: "lab" in self._cluster("Cluster"), "accounting knows the cluster")

    def await_controller(self) -> None:
        """Returns once slurmctld has registered: what it tells before that may come late or never."""
        self.lab.wait(lambda: self._cluster("ControlHost"), "slurmctld has registered with accounting")

    def _cluster(self, field: str) -> str:
        return self.lab.run("sacctmgr", "-nP", "show", "cluster", f"format={field}").stdout.strip()

    def _sql(self, socket: Path, statement: str) -> bool:
        done = self.lab.run("mariadb", "--no-defaults", "-u", "root", "-S", str(socket), "-e", statement)
        return done.returncode == 0
