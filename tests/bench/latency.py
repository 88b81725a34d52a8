"""Measure how soon: `make bench-latency`. A whole `midwatch up` with its default settings, and real jobs.

From the last line to the incident, from settled to the command, from there to the new start on each cluster,
and from the SIGKILL of each kind of process to the moment when what happened after the kill has come through
it. And what an executor needs that does nothing but look. Clocks are those of the jobs' own ledgers
and of a consumer beside the watch, on one machine.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench import executor_cost
from bench.latency_clusters import JOB, Clusters, Words, running
from bench.latency_follow import Arrival, Follower, noted, steps, suspected, times
from bench.latency_report import Sample, write_report
from integration.up.conftest import PROCESSES, Up
from midwatch.streams.records import Command, Incident, SchedulerFact
from midwatch.streams.services.connection import with_connection
from midwatch.streams.services.reachable import redis_client
from midwatch.streams.settings.file import load_settings
from midwatch.streams.worker.tables.keys import offset_key
from midwatch.streams.worker.tables.script import parse_offset
from processes import alive, wait_for

PATIENCE_S = 300.0
LOOKED_S = 60.0
KINDS = (*PROCESSES, "shipper")
CLUSTERS = {"local": "local", "ray": "Ray", "slurm": "SLURM"}


_BUDGET = """
policy: budget
modes:
  crash:
    kind: verdict
    max_restarts: {}
"""


class Bench:
    """One installation, its follower, and the samples so far."""

    def __init__(self, up: Up, directory: Path, samples: list[Sample]) -> None:
        self.up = up
        self.directory = directory
        self.samples = samples
        environment = {"MIDWATCH_STATE_DIRECTORY": str(up.state)}
        self.settings = with_connection(load_settings(None, environment=environment))
        self.redis: Any = redis_client(self.settings)
        self.follower = Follower(self.settings)
        self.follower.start()

    def run(self, kind: str, *options: str, words: Words | None = None) -> tuple[str, Path]:
        """Start a job through `midwatch run`; its name and its ledger."""
        name = f"{kind}-{time.time_ns()}"
        ledger = self.directory / f"{name}.ledger"
        argv = ["run", "--json", "--act", f"--job={name}", *options]
        command = ["sleep", "600"] if kind == "sleeper" else [sys.executable, str(JOB), kind, str(ledger)]
        done = self.up.midwatch(*argv, *(words(ledger) if words else ("--", *command)))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout).get("job", name), ledger

    def add(self, what: str, seconds: float) -> None:
        self.samples.append(Sample(what, seconds, os.getloadavg()[0]))
        print(f"{what:32} {seconds * 1000:8.0f} ms", flush=True)

    # -- lines and ends

    def lines(self, job: str, ledger: Path, count: int) -> None:
        """Of a job that lives: from each cause line so far to the incident that is suspected of it."""
        wait_for(lambda: len(times(ledger, "cause")) > count + 5, "enough lines", PATIENCE_S)
        wait_for(lambda: len(self._suspected(job)) > count + 3, "enough incidents", PATIENCE_S)
        written = times(ledger, "cause")
        for number, at in list(self._suspected(job).items())[3:]:  # the first wait for the shipper
            self.add("line → incident", at - written[number])

    def _suspected(self, job: str) -> dict[int, float]:
        found: dict[int, float] = {}
        for arrival in list(self.follower.arrivals):
            number = suspected(arrival.record)
            if number is not None and arrival.record.job.endswith(job):
                found.setdefault(number, arrival.at)
        return found

    def ends(self, count: int, cluster: str = "local", words: Words | None = None) -> None:
        """Of a job that dies and is rescued again and again."""
        (policy := self.directory / "budget.yaml").write_text(_BUDGET.format(count))
        name, ledger = self.run("mortal", f"--policy={policy}", words=words)
        where = "" if cluster == "local" else f"{CLUSTERS[cluster]}: "
        for attempt in range(1, count + 1):
            wait_for(partial(self._rescued, ledger, attempt), f"rescue {attempt}", PATIENCE_S)
            wait_for(partial(self._ordered, name, attempt), f"order {attempt}", PATIENCE_S)
            mine = [a for a in self.follower.arrivals if getattr(a.record, "job", "").endswith(name)]
            settled = next(
                a.at
                for a in mine
                if isinstance(a.record, Incident)
                and (a.record.attempt, a.record.state) == (attempt, "settled")
            )
            command = next(
                a.at for a in mine if isinstance(a.record, Command) and a.record.attempt == attempt
            )
            last = list(times(ledger, "cause").values())[attempt - 1]
            opened = next(
                a.at for a in mine if isinstance(a.record, Incident) and a.record.attempt == attempt
            )
            again = list(times(ledger, "start").values())[attempt]
            exited = list(times(ledger, "exit").values())[attempt - 1]
            self.add(f"{where}last line → incident", opened - last)
            self.add(f"{where}exit → settled", settled - exited)
            self.add(f"{where}settled → command", command - settled)
            self.add(f"{where}command → the job runs again", again - command)
            self.add(f"{where}last line → the job runs again", again - last)

    def _ordered(self, name: str, attempt: int) -> bool:
        def is_it(arrival: Arrival) -> bool:
            order = arrival.record
            return isinstance(order, Command) and order.job.endswith(name) and order.attempt == attempt

        return self.follower.first(is_it) is not None

    def _rescued(self, ledger: Path, attempt: int) -> bool:
        return len(times(ledger, "start")) > attempt

    # -- kills

    def kills(self, ledger: Path, count: int) -> None:
        """Each kind in turn, so that a process rarely dies twice within a minute."""
        wait_for(lambda: self._through(ledger, 0.0) is not None, "the job is watched", PATIENCE_S)
        for _ in range(count):
            for kind in KINDS:
                sleeper = self.run("sleeper")[0] if kind == "executor" else ""
                self._settle_down(ledger)
                self.add(f"{kind} killed → watching again", self._kill(kind, ledger, sleeper))

    def _settle_down(self, ledger: Path) -> None:
        """Everything is ready, and what is written now comes through at once."""
        wait_for(lambda: all(self.up.pid_of(name) for name in PROCESSES), "all are ready", PATIENCE_S)
        since = time.time()
        wait_for(lambda: time.time() > since + 2, "a moment of peace", 30)
        wait_for(lambda: self._through(ledger, time.time() - 2) is not None, "lines come", PATIENCE_S)

    def _kill(self, kind: str, ledger: Path, sleeper: str) -> float:
        known = len(self.follower.arrivals)
        pid = self._shipper(ledger) if kind == "shipper" else self.up.pid_of(kind)
        if kind == "executor":
            wait_for(lambda: self._told(sleeper, 0, ended=False), "the executor watches it", PATIENCE_S)
        os.kill(pid, signal.SIGKILL)
        killed = time.time()
        back: Callable[[], float | None]
        if kind in ("match", "shipper"):
            back = lambda: self._through(ledger, killed, known)  # noqa: E731  # one of four ways to look
        elif kind == "detect":
            back = lambda: self._incident(ledger, killed, known)  # noqa: E731  # as above
        elif kind == "decide":
            back = lambda: self._decided(killed, known)  # noqa: E731  # as above
        else:
            self._end(sleeper)
            back = lambda: self._told(sleeper, known, ended=True)  # noqa: E731  # as above
        found: list[float] = []

        def looked() -> bool:
            found.extend(at for at in (back(),) if at is not None)
            return bool(found)

        wait_for(looked, f"{kind} is back", PATIENCE_S)
        wait_for(lambda: not alive(pid), "the killed one is gone")
        return found[0] - killed

    def _through(self, ledger: Path, since: float, known: int = 0) -> float | None:
        """When a step that was written after `since` came out of match."""
        fresh = {number for number, at in times(ledger, "step").items() if at > since}
        told = self.follower.first(lambda a: not fresh.isdisjoint(steps(a.record)), known)
        return told.at if told else None

    def _incident(self, ledger: Path, since: float, known: int) -> float | None:
        fresh = {number for number, at in times(ledger, "cause").items() if at > since}
        told = self.follower.first(lambda a: suspected(a.record) in fresh, known)
        return told.at if told else None

    def _decided(self, since: float, known: int) -> float | None:
        """When decide had done an incident that came after the kill, by the offset beside its state."""

        def is_fresh(arrival: Arrival) -> bool:
            return arrival.topic == self.settings.topic_names.incidents and arrival.at > since + 0.2

        fresh = self.follower.first(is_fresh, known)
        if fresh is None:
            return None
        group = f"{self.settings.topics.prefix}.decide"
        stored = self.redis.get(offset_key(group, fresh.topic, fresh.partition))
        return time.time() if parse_offset(stored)[0] >= fresh.offset else None

    def _told(self, job: str, known: int, *, ended: bool) -> float | None:
        def is_word(arrival: Arrival) -> bool:
            fact = arrival.record
            return isinstance(fact, SchedulerFact) and fact.job.endswith(job) and fact.ended is ended

        told = self.follower.first(is_word, known)
        return told.at if told else None

    def _end(self, job: str) -> None:
        fact = self.follower.first(
            lambda a: isinstance(a.record, SchedulerFact) and a.record.job.endswith(job)
        )
        assert fact is not None
        os.killpg(int(fact.record.native_id), signal.SIGKILL)

    def _shipper(self, ledger: Path) -> int:
        (shim,) = (row["number"] for row in noted(ledger) if row["what"] == "shim")
        script = noted(ledger)[0]["pid"]
        found: list[int] = []

        def there() -> bool:
            told = Path(f"/proc/{shim}/task/{shim}/children").read_text().split()
            found[:] = [int(pid) for pid in told if int(pid) != script and alive(int(pid))]
            return bool(found)

        wait_for(there, "the shim's shipper")
        return found[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write bench/results/latency.{json,md,svg}."""
    parser = argparse.ArgumentParser(description=__doc__, prog="make bench-latency")
    parser.add_argument("--lines", type=int, default=100)
    parser.add_argument("--ends", type=int, default=30)
    parser.add_argument("--clusters", nargs="+", choices=CLUSTERS, default=list(CLUSTERS))
    parser.add_argument("--listed", type=int, default=200, help="jobs at which looking is measured; 0: not")
    parser.add_argument("--kills", type=int, default=10, help="of each kind of process")
    parser.add_argument("--set", action="append", default=[], help="a setting of `up`, as KEY=VALUE")
    parser.add_argument("--note", default="", help="what is odd about this run, for the page")
    parser.add_argument("--output", type=Path, default=Path("bench/results"))
    chosen = parser.parse_args(arguments)
    samples: list[Sample] = []
    costs: list[executor_cost.Cost] = []
    try:
        with (
            tempfile.TemporaryDirectory(prefix="midwatch-latency-") as folder,
            running(chosen.clusters) as clusters,
        ):
            _measure(chosen, Path(folder), samples, clusters)
            if chosen.listed and clusters.head is not None:
                costs.append(executor_cost.on_ray(clusters.head, chosen.listed, LOOKED_S, chosen.set))
            if chosen.listed and clusters.slurm is not None:
                costs.append(executor_cost.on_slurm(clusters.slurm, chosen.listed, LOOKED_S, chosen.set))
    finally:
        if samples:  # an hour's half is better than nothing
            write_report(samples, chosen.set, chosen.output, note=chosen.note, costs=costs)
    return 0


def _measure(chosen: argparse.Namespace, directory: Path, samples: list[Sample], clusters: Clusters) -> None:
    settings = (f"--set={each}" for each in chosen.set)
    up = Up(directory, "--act", *settings, **clusters.environment)
    try:
        up.await_ready()
        bench = Bench(up, directory, samples)
        for cluster, words in clusters.words.items():
            if cluster != "local":
                bench.ends(chosen.ends, cluster, words)
        if "local" in clusters.words:
            name, steady = bench.run("steady")
            bench.ends(chosen.ends)
            bench.lines(name, steady, chosen.lines)
            bench.kills(steady, chosen.kills)
            os.kill(noted(steady)[0]["pid"], signal.SIGKILL)
        bench.follower.stop()
    finally:
        up.stop()
        for pid in up.processes():
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    raise SystemExit(main())
