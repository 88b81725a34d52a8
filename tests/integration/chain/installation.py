"""A whole midwatch for one test: own topics on the session's Kafka and Redis, every part a real process."""

from __future__ import annotations

import contextlib
import json
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
from typing import TypeVar

from integration.chain.same_again import jobs_of, same_again
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.agents.local.up.services import with_endpoints
from midwatch.agents.query.inquiry import ask_job
from midwatch.agents.query.timeline import Timeline
from midwatch.agents.signing import ensure_keys
from midwatch.streams.errors import UsageError
from midwatch.streams.records import Command, Decision, Finding
from midwatch.streams.services.connection import write_connection
from midwatch.streams.services.topic_admin import make_topics
from midwatch.streams.settings.file import load_settings
from midwatch.streams.settings.reader import Assignment
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.readiness import is_ready
from processes import processes_of, wait_for

Kind = TypeVar("Kind")
WRITER = Path(__file__).with_name("writer.py")
OPTIONS = (
    "executor.poll=1s",
    "ship.interval=0.5s",
    "worker.within=0.1s",
    "worker.session_timeout=2s",
    "detect.settle_grace=1s",
)
PARTITIONS = dict.fromkeys(("logs", "events", "incidents"), 4) | dict.fromkeys(
    ("decisions", "commands", "specs"), 2
)
WORKERS = ("match", "detect", "decide")
NODES = ("n0", "n1", "n2")


def midwatch(*arguments: str) -> list[str]:
    """The command line of one of our processes, with the quick settings of these tests."""
    return [sys.executable, "-P", "-m", "midwatch", *arguments, *(f"--set={option}" for option in OPTIONS)]


@dataclass
class Installation:
    """Processes by name. A worker or the executor that dies is started again, as every site does it; one that
    died without a test's doing is noted in `died`, and `installation` fails for it at its end."""

    directory: Path
    settings: Settings
    environment: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    begun: dict[str, Callable[[], subprocess.Popen[bytes]]] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)
    died: list[str] = field(default_factory=list)
    killed: set[int] = field(default_factory=set)
    forgiven: str = ""
    mutated: bool = False  # a worker of another making: nothing says that its words can be derived again

    def __post_init__(self) -> None:
        self._hands = threading.RLock()
        self._supervisor = threading.Thread(target=self._look_after, daemon=True)
        self._supervisor.start()

    def start(self, name: str, *command: str, **variables: str) -> None:
        """`command` replaces the process's own command line: a mutant, for instance."""
        own = ["worker", name] if name in WORKERS else [name]
        argv = list(command) or midwatch(*own)
        self.mutated = self.mutated or bool(command and name in WORKERS)

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

        with self._hands:
            self.processes[name] = begin()
            if name in (*WORKERS, "executor", "trace"):
                self.begun[name] = begin

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """The test's own doing: the supervisor starts it again, and it does not count as a death."""
        with self._hands:
            process = self.processes[name]
            self.killed.add(process.pid)
            process.send_signal(how)

    def replace(self, name: str, *command: str, **variables: str) -> None:
        """A rolling restart of one process: it is asked to end, and another one takes its place."""
        with self._hands:
            self.killed.add(self.processes[name].pid)
            self.processes[name].terminate()
            self.processes[name].wait(30)
            self.start(name, *command, **variables)

    def forgive(self, why: str) -> None:
        """From here on the test breaks what workers live on: they may die of it."""
        self.forgiven = why

    def _look_after(self) -> None:
        while not self.over.wait(0.5):
            with self._hands:
                for name in self.begun:
                    self._again(name)
        for name in self.begun:
            self._note(name)

    def _again(self, name: str) -> None:
        if self.processes[name].poll() is not None:
            self._note(name)
            self.processes[name] = self.begun[name]()

    def _note(self, name: str) -> None:
        process = self.processes[name]
        if process.poll() is None or process.pid in self.killed or self.forgiven:
            return
        self.died.append(f"{name} ended with status {process.returncode} by itself\n{self._tail(name)}")

    def _tail(self, name: str) -> str:
        return "\n".join((self.directory / f"{name}.log").read_text(errors="replace").splitlines()[-30:])

    def ready(self, *names: str) -> None:
        for name in names or tuple(self.processes):
            tail = partial(self._tail, name)
            wait_for(partial(self._is_ready, name), f"{name} is ready", 180, seen=tail)

    def _is_ready(self, name: str) -> bool:
        return is_ready(self.settings.state_directory, name, self.processes[name].pid)

    def run(
        self,
        directory: Path,
        *options: str,
        nodes: tuple[str, ...] = NODES,
        name: str = "",
        writer: Path = WRITER,
    ) -> Job:
        """Start a writer as a job through `midwatch run`; it ships nothing but its own output."""
        directory.mkdir()
        name, count = name or f"job-{secrets.token_hex(4)}", len(nodes) + 1
        about = ("--json", f"--job={name}", f"--nodes={count}", "--act", *options)
        command = [*midwatch("run", *about), "--", sys.executable, str(writer), str(directory), *nodes]
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

    def finish_jobs(self, beneath: Path | None = None) -> None:
        """Every job ends well, and its shippers with it: what no test looks at any more must not load the
        tests to come. With `beneath` those alone whose directories are in there."""
        jobs = [job for job in self.jobs if beneath is None or job.directory.is_relative_to(beneath)]
        for job in jobs:
            job.finish()
        self._end(*(job.shipper(node) for job in jobs for node in job.nodes if job.ships(node)))

    def judge_again(self) -> None:
        """Every field of what was said and decided of every job follows from its recording."""
        if self.mutated or not set(WORKERS) <= set(self.processes):
            return
        for name in WORKERS:
            self.processes[name].send_signal(signal.SIGCONT)
        self._end_jobs()  # so that the workers soon have nothing more to say
        for job in jobs_of(self.settings):
            same_again(self.settings, job)

    def end(self) -> None:
        self._end_jobs()
        self.over.set()
        self._supervisor.join()
        self._end(*self.processes.values())

    def _end_jobs(self) -> None:
        """The executor first: it must not rescue what is ended here."""
        with self._hands:
            for name in ("executor", "trace"):
                if name in self.begun:
                    self._note(name)
                    del self.begun[name]
        others = {name: self.processes[name] for name in set(self.processes) - set(WORKERS)}
        if executor := others.pop("executor", None):
            self._end(executor)
        self._end(*others.values())
        for job in self.jobs:
            job.end()

    def _end(self, *processes: subprocess.Popen[bytes]) -> None:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in processes:
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
    whole_name: str = ""

    def starts(self) -> int:
        """How often the job was started, by its own count."""
        file = self.directory / "starts"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def end(self) -> None:
        """No start of it is left behind. Its shims tell of the end."""
        for pid in self._living():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

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

    def finish(self) -> None:
        """It returns when no start of it lives, and none is to be rescued: it has ended well."""
        self.tell("finish")
        wait_for(lambda: not self._living(), f"{self.name} has finished")

    def _living(self) -> set[int]:
        """The pids of its starts, but for those that other processes have by now."""
        starts = {int(pid) for pid in (self.directory / "starts").read_text().split()}
        return starts & set(processes_of(self.name))

    def ships(self, node: str) -> bool:
        """Whether the node ever had a shipper of its own."""
        return f"{self.name}-{node}" in self.installation.processes

    def shipper(self, node: str) -> subprocess.Popen[bytes]:
        return self.installation.processes[f"{self.name}-{node}"]

    def tell(self, what: str, words: str = "") -> None:
        """`words` are there whole when the job sees the file."""
        draft = self.directory / f".{what}"
        draft.write_text(words)
        draft.rename(self.directory / what)

    def crash(self, *lines: tuple[str, str]) -> None:
        """The job prints (node, line), in this order, and ends with exit code 1."""
        self.tell("crash", json.dumps(lines))

    def story(self) -> Timeline | None:
        """Asked by its whole name once that is known: then only the job's own partitions are read."""
        try:
            told = ask_job(self.installation.settings, self.whole_name or self.name, _now_ms(), 10)[0]
        except UsageError:
            return None
        self.whole_name = told.job
        return told

    def records(self) -> list[object]:
        story = self.story()
        return [timed.record for timed in story.steps] if story else []

    def all_of(self, kind: type[Kind]) -> list[Kind]:
        return [record for record in self.records() if isinstance(record, kind)]

    def commands(self) -> list[Command]:
        story = self.story()
        return [c for a in story.attempts for c in a.commands] if story else []

    def decisions(self) -> list[Decision]:
        return self.all_of(Decision)

    def findings(self, kind: str) -> list[Finding]:
        return [found for found in self.all_of(Finding) if found.kind == kind]

    def step(self) -> int:
        story = self.story()
        return (story.last_step or 0) if story else 0


def _now_ms() -> int:
    return int(time.time() * 1000)


def _pair(option: str) -> tuple[str, str]:
    name, _, value = option.partition("=")
    return name, value


@contextlib.contextmanager
def installation(directory: Path, stack: Endpoints) -> Iterator[Installation]:
    """Topics, keys and connection are made; no process runs yet."""
    quick = [Assignment(tuple(name.split(".")), value, "test") for name, value in map(_pair, OPTIONS)]
    settings = load_settings(None, environment={}, here=directory, options=quick)
    settings = replace(
        with_endpoints(settings, stack),
        state_directory=directory / "state",
        topics=replace(
            settings.topics,
            prefix=f"t{secrets.token_hex(3)}",
            partitions=replace(settings.topics.partitions, **PARTITIONS),
        ),
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
        made.judge_again()
    finally:
        made.end()
    assert not made.died, "\n\n".join(made.died)
