"""A whole midwatch for one test: own topics on the session's Kafka and Redis, every part a real process."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from midwatch.agents.inquiry import ask_job
from midwatch.agents.signing import ensure_keys
from midwatch.agents.story import Story
from midwatch.streams.connection import write_connection
from midwatch.streams.embedded.stack import Endpoints
from midwatch.streams.errors import UsageError
from midwatch.streams.readiness import is_ready
from midwatch.streams.records import Command, Decision, Finding
from midwatch.streams.secret import Secret
from midwatch.streams.settings import Settings
from midwatch.streams.topic_admin import make_topics
from processes import wait_for

WRITER = Path(__file__).with_name("writer.py")
OPTIONS = (
    "executor.poll=0.3s",
    "ship.interval=0.5s",
    "worker.session_timeout=2s",
    "detect.settle_grace=1s",
)
WORKERS = ("match", "detect", "decide")


def midwatch(*arguments: str) -> list[str]:
    """The command line of one of our processes, with the quick settings of these tests."""
    return [sys.executable, "-P", "-m", "midwatch", *arguments, *(f"--set={option}" for option in OPTIONS)]


@dataclass
class Installation:
    """Processes by name; `stop(name)` ends one, `pause(name)` stops its clock."""

    directory: Path
    settings: Settings
    environment: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    begun: dict[str, Callable[[], subprocess.Popen[bytes]]] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._supervisor = threading.Thread(target=self._look_after, daemon=True)
        self._supervisor.start()

    def start(self, name: str, *command: str, **variables: str) -> None:
        """`command` replaces the process's own command line: a mutant, for instance."""
        own = ["worker", name] if name in WORKERS else [name]
        argv = list(command) or midwatch(*own)

        def begin() -> subprocess.Popen[bytes]:
            with (self.directory / f"{name}.log").open("ab") as log:
                return subprocess.Popen(
                    argv,
                    cwd=self.directory,
                    env=self.environment | variables,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )

        if name in (*WORKERS, "executor"):
            self.begun[name] = begin
        self.processes[name] = begin()

    def _look_after(self) -> None:
        """Workers and the executor are always started again, as `midwatch up` and every site do it."""
        while not self.over.wait(0.5):
            for name, begin in list(self.begun.items()):
                if self.processes[name].poll() is not None and not self.over.is_set():
                    self.processes[name] = begin()

    def ready(self, *names: str) -> None:
        for name in names or tuple(self.processes):
            wait_for(partial(self._is_ready, name), f"{name} is ready", 180)

    def _is_ready(self, name: str) -> bool:
        return is_ready(self.settings.state_directory, name, self.processes[name].pid)

    def run(self, directory: Path, *options: str, nodes: tuple[str, ...] = ("n0", "n1", "n2")) -> Job:
        """Start a writer as a job through `midwatch run`; it ships nothing but its own output."""
        directory.mkdir()
        name, count = f"job-{secrets.token_hex(4)}", len(nodes) + 1
        about = ("--json", f"--job={name}", f"--nodes={count}", "--act", *options)
        command = [*midwatch("run", *about), "--", sys.executable, str(WRITER), str(directory), *nodes]
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        job = Job(self, name, directory, nodes)
        self.jobs.append(job)
        wait_for(lambda: job.starts() == 1, "the job runs")
        return job

    def end(self) -> None:
        # The executor first: it must not rescue what is ended here.
        self.over.set()
        self._supervisor.join()
        order = sorted(self.processes, key=lambda name: name != "executor")
        for name in order:
            self._end(self.processes[name])
        for job in self.jobs:
            job.end()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
            process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass
class Job:
    """One job of an installation and its shippers."""

    installation: Installation
    name: str
    directory: Path
    nodes: tuple[str, ...]

    def starts(self) -> int:
        """How often the job was started, by its own count."""
        file = self.directory / "starts"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def end(self) -> None:
        """No process of it is left behind."""
        for pid in (self.directory / "starts").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def incarnation(self) -> str:
        story = self.story()
        assert story is not None
        assert story.spec is not None
        return story.spec.incarnation

    def ship(self) -> None:
        """One real shipper for each node."""
        wait_for(lambda: (s := self.story()) is not None and s.spec is not None, "the job's spec is known")
        incarnation = self.incarnation()
        for node in self.nodes:
            log = self.directory / f"{node}.log"
            wait_for(log.exists, f"{node} prints")
            about = (f"--job={self.name}", f"--node={node}", f"--nodes={len(self.nodes) + 1}")
            self.installation.start(
                f"{self.name}-{node}",
                *midwatch("ship", *about, "--start=beginning"),
                str(log),
                MIDWATCH_INCARNATION=incarnation,
            )

    def shipper(self, node: str) -> subprocess.Popen[bytes]:
        return self.installation.processes[f"{self.name}-{node}"]

    def tell(self, what: str) -> None:
        (self.directory / what).touch()

    def story(self) -> Story | None:
        try:
            return ask_job(self.installation.settings, self.name, int(time.time() * 1000), 10)[0]
        except UsageError:
            return None

    def records(self) -> list[object]:
        story = self.story()
        return [timed.record for timed in story.steps] if story else []

    def commands(self) -> list[Command]:
        story = self.story()
        return [c for a in story.attempts for c in a.commands] if story else []

    def decisions(self) -> list[Decision]:
        return [r for r in self.records() if isinstance(r, Decision)]

    def findings(self, kind: str) -> list[Finding]:
        return [r for r in self.records() if isinstance(r, Finding) and r.kind == kind]

    def step(self) -> int:
        story = self.story()
        return (story.last_step or 0) if story else 0


@contextlib.contextmanager
def installation(directory: Path, stack: Endpoints) -> Iterator[Installation]:
    """Topics, keys and connection are made; no process runs yet."""
    redis = urlsplit(stack.redis_url)
    settings = Settings()
    settings = replace(
        settings,
        state_directory=directory / "state",
        kafka=replace(
            settings.kafka,
            bootstrap=(stack.kafka,),
            username=stack.kafka_username,
            password=Secret(stack.kafka_password),
        ),
        redis=replace(
            settings.redis,
            url=f"redis://{redis.hostname}:{redis.port}/0",
            password=Secret(redis.password or ""),
        ),
        topics=replace(settings.topics, prefix=f"t{secrets.token_hex(3)}"),
        watch=replace(settings.watch, mode="act"),
    )
    settings.state_directory.mkdir(parents=True, mode=0o700)
    make_topics(settings)
    ensure_keys(settings.state_directory)
    write_connection(settings)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MIDWATCH_")}
    environment["MIDWATCH_STATE_DIRECTORY"] = str(settings.state_directory)
    made = Installation(directory, settings, environment)
    try:
        yield made
    finally:
        made.end()
