"""A real Ray head on this machine, in a directory of its own, on free ports, with false GPUs.

`ray start` leaves daemons behind; each names the directory on its command line or holds a file in it open.
So `kill` and `close` find them, and no other Ray of this machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from midwatch.agents.local.embedded.redis import candidates
from midwatch.streams.services import ray_jobs
from processes import alive, wait_for
from ray_lab.packages import FOLDER

BOOT_S = 150.0
_TRIES = 3
_ONE_AT_A_TIME = threading.Lock()
"""Ray's own start gives up after 30 s. Two that begin together on few cores would both come near it."""
_RAY = re.compile(r"raylet|gcs_server|ray/|ray::|ray-dashboard|ray_|default_worker|redis-server")


class RayLab:
    """One head node. `close` ends it and everything that it started."""

    def __init__(
        self, directory: Path, *, redis: bool = False, token: str = "", gpus: int = 8, whole: bool = False
    ) -> None:
        """`whole`: with the log monitor, which Ray Train needs, and the autoscaler, which tells who waits."""
        self.directory = directory
        self.token = token
        self.gpus = gpus
        self.whole = whole
        self.redis: subprocess.Popen[bytes] | None = None
        self.ports = _free_ports(7)
        self.address = f"http://127.0.0.1:{self.ports[1]}"
        self._wants_redis = redis
        self._password = "lab"

    @property
    def head(self) -> ray_jobs.RayHead:
        """The way in for midwatch's own client."""
        return ray_jobs.RayHead(self.address, self.token)

    def boot(self) -> None:
        """Starts the head and waits until its Jobs API answers. Call it again after `kill_head`."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if self._wants_redis and self.redis is None:
            self._start_redis()
        gcs, dashboard, agent, client, grpc, metrics, _ = self.ports
        argv = [str(FOLDER / "bin" / "ray"), "start", "--head", "--node-ip-address=127.0.0.1"]
        argv += [f"--port={gcs}", "--dashboard-host=127.0.0.1", f"--dashboard-port={dashboard}"]
        argv += [f"--dashboard-agent-listen-port={agent}", f"--ray-client-server-port={client}"]
        argv += [f"--dashboard-agent-grpc-port={grpc}", f"--metrics-export-port={metrics}"]
        argv += ["--num-cpus=4", f"--num-gpus={self.gpus}", f"--temp-dir={self.directory}"]
        argv += ["--object-store-memory=80000000", "--disable-usage-stats"]
        argv += [f"--redis-password={self._password}"] if self._wants_redis else []
        argv += [] if self.whole else ["--include-log-monitor=false", "--no-monitor"]
        up = self.directory / "up.log"
        for number in range(1, _TRIES + 1):
            with _ONE_AT_A_TIME, up.open("ab") as log:
                done = subprocess.run(
                    argv, env=self.environment, stdout=log, stderr=log, check=False, timeout=BOOT_S
                )
            if not done.returncode:
                break
            if number == _TRIES:
                raise RuntimeError(f"ray start failed:\n{up.read_text()[-3000:]}")
            self.kill_head()
        wait_for(self.answers, f"the Jobs API of {self.directory}", BOOT_S)

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "MIDWATCH_"))}
        kept |= {"PATH": f"{FOLDER / 'bin'}:{os.environ['PATH']}", "RAY_USAGE_STATS_ENABLED": "0"}
        # Ray gives its workers the niceness 15: beside other tests those of Ray Train would hardly run.
        kept |= {"RAY_worker_niceness": "0"}
        # A job's variables make an environment of its own, which no worker that was started before can serve.
        kept |= {"RAY_prestart_worker_first_driver": "0"}
        # Said in both cases: a token in the home folder would make a head without one ask for it.
        kept |= (
            {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}
            if self.token
            else {"RAY_AUTH_MODE": "disabled"}
        )
        if self._wants_redis:
            kept |= {"RAY_REDIS_ADDRESS": f"127.0.0.1:{self.ports[6]}", "RAY_REDIS_PASSWORD": self._password}
            kept |= {"RAY_external_storage_namespace": self.directory.name}
        return kept

    def answers(self) -> bool:
        with contextlib.suppress(OSError):
            return ray_jobs.call(self.head, "GET", "/api/jobs/", timeout=5).status == 200
        return False

    def api(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """One call of the Jobs API: status and JSON, or the text where it is none."""
        answer = ray_jobs.call(
            self.head, method, path, json.dumps(body).encode() if body is not None else None, timeout=30
        )
        try:
            return answer.status, json.loads(answer.body)
        except ValueError:
            return answer.status, answer.body.decode(errors="replace")

    def session(self) -> str:
        return str(self.api("GET", "/api/version")[1]["session_name"])

    def job(self, submission: str) -> dict[str, Any]:
        status, job = self.api("GET", f"/api/jobs/{submission}")
        return job if status == 200 else {"status": str(status)}

    def wait_status(self, submission: str, *statuses: str, limit: float = 60) -> dict[str, Any]:
        wait_for(
            lambda: self.job(submission)["status"] in statuses,
            f"{submission} is {statuses}",
            limit,
            seen=lambda: self.job(submission),
        )
        return self.job(submission)

    def submissions(self) -> list[dict[str, Any]]:
        jobs = self.api("GET", "/api/jobs/")[1]
        return [job for job in jobs if job["type"] == "SUBMISSION"]

    def daemon(self, name: str) -> int:
        """The process of this head whose command line has that word, such as `gcs_server` or `raylet`."""
        found = [pid for pid in self.processes() if name in _command_line(pid)]
        assert found, f"no {name} of {self.directory}"
        return min(found)

    def freeze(self, name: str, *, thaw: bool = False) -> None:
        os.kill(self.daemon(name), signal.SIGCONT if thaw else signal.SIGSTOP)

    def kill(self, name: str) -> None:
        """kill -9 of one daemon."""
        pid = self.daemon(name)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not alive(pid), f"the end of {name}")

    def kill_head(self) -> None:
        """kill -9 of all daemons at once, as when the head node dies. Its jobs' processes are not touched.

        An agent that is left would hold its port for as long as it waits for the dead GCS.
        """
        names = (
            *("gcs_server", "raylet", "dashboard", "runtime_env", "monitor.py", "util.client"),
            *("ray::DashboardAgent", "ray::RuntimeEnvAgent"),
        )
        daemons = [pid for pid in self.processes() if any(name in _command_line(pid) for name in names)]
        for pid in daemons:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not any(map(alive, daemons)), "the end of the head")

    def clear(self) -> None:
        """Stops all jobs, so that the next test finds a head at rest."""
        for job in self.submissions():
            if job["status"] in ("PENDING", "RUNNING"):
                self.api("POST", f"/api/jobs/{job['submission_id']}/stop")
        wait_for(
            lambda: all(j["status"] not in ("PENDING", "RUNNING") for j in self.submissions()),
            "all jobs ended",
        )

    def processes(self) -> list[int]:
        """The processes of this Ray: daemons, workers, and jobs, which inherit a file of its session."""
        redis = [self.redis.pid] if self.redis else []
        return [
            int(name)
            for name in os.listdir("/proc")
            if name.isdigit() and int(name) not in (os.getpid(), *redis) and self._ours(int(name))
        ]

    def close(self) -> None:
        deadline = time.monotonic() + 20
        while (left := [pid for pid in self.processes() if alive(pid)]) and time.monotonic() < deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)  # between two looks at what is left
        if self.redis is not None:
            self.redis.kill()
            self.redis.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _ours(self, pid: int) -> bool:
        here = str(self.directory)
        if here in _command_line(pid) and _RAY.search(_command_line(pid)):
            return True
        with contextlib.suppress(OSError):
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{descriptor}").startswith(f"{here}/session_"):
                        return True
        return False

    def _start_redis(self) -> None:
        port = self.ports[6]
        folder = self.directory / "redis"
        folder.mkdir(exist_ok=True)
        argv = [
            str(next(candidates(os.environ))),
            f"--port {port}",
            f"--dir {folder}",
            f"--requirepass {self._password}",
        ]
        argv += ["--bind 127.0.0.1", "--save", ""]
        words = [word for each in argv for word in each.split(" ", 1)]
        with (folder / "log").open("ab") as log:
            self.redis = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        wait_for(lambda: _listens(port), "Redis of the head", 20)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on. Ray gives 10002 to 19999 to its workers, so ours lie above."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports if min(ports) > 20_000 else _free_ports(count)
