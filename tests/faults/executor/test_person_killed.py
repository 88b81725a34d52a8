"""A person's `midwatch resume`, whatever is killed meanwhile: one new start at most, one if asked again."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from executor_world import World, ledger, midwatch
from midwatch.agents.launch.job_spec import Started, spec_event
from midwatch.agents.reporter import Reporter
from midwatch.streams.records import Incident, Outcome, PersonAct, Verdict
from midwatch.streams.records.codec import encode
from processes import wait_for

pytestmark = pytest.mark.integration


def settled(world: World, started: Started) -> None:
    """Detect's word on the first attempt, which no detect says here."""
    world.await_end(started)
    job = started.spec.job
    incident = Incident(
        id=f"{job}#1",
        job=job,
        attempt=1,
        incarnation=started.incarnation,
        state="settled",
        revision=1,
        verdict=Verdict("failed", "crash", "python_exception", "application"),
        spec=spec_event(started.spec, started.incarnation),
        words=("scheduler",),
    )
    reporter = Reporter(world.settings)
    reporter._send(world.settings.topic_names.incidents, job.encode(), encode(incident))
    reporter.close()


def resume(world: World, job: str, failpoint: str = "") -> subprocess.CompletedProcess[str]:
    environment = world.environment | ({"MIDWATCH_FAILPOINT": failpoint} if failpoint else {})
    return subprocess.run(
        [sys.executable, "-P", "-m", "midwatch", "resume", job, "--same", "--yes", "--patience=60"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("point", ["claim", "act"])
def test_an_executor_killed_at_a_persons_command_starts_the_job_once(observing: World, point: str) -> None:
    """Unarmed, in observe mode: a person asked for it."""
    world = observing
    world.executor()
    started, place = world.train("--fault", "exception@15:1", armed=False)
    settled(world, started)
    world.close_executors()
    dying = world.executor(failpoint=point)
    environment = world.environment
    argv = [sys.executable, "-P", "-m", "midwatch", "resume", started.spec.job, "--same", "--yes"]
    person = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for(lambda: dying.poll() is not None, "the executor dies", 60)
    world.executor()
    shown = person.communicate(timeout=120)[0].decode()
    assert person.returncode == 0, shown
    wait_for(lambda: bool(ledger(place, "done")), "it is done", 60)
    assert [row["first_step"] for row in ledger(place, "start")] == [1, 11]
    again = midwatch(world, "resume", started.spec.job, "--same", "--yes")
    assert again.returncode == 2, "its latest attempt is another one now"
    assert len(ledger(place, "start")) == 2


def test_a_person_killed_on_the_way_has_started_nothing_and_asks_again(world: World) -> None:
    world.executor()
    started, place = world.train("--fault", "exception@15:1", armed=False)
    settled(world, started)
    job = started.spec.job
    assert resume(world, job, "resume-act").returncode == -signal.SIGKILL
    world.send(world.order(started, seq=77))  # by the time of its answer, any earlier command has one too
    wait_for(lambda: any(isinstance(e, Outcome) for e in world.events(job)), "the executor answered", 60)
    assert len(ledger(place, "start")) == 1
    done = resume(world, job)
    assert done.returncode == 0, done.stderr
    wait_for(lambda: bool(ledger(place, "done")), "it is done", 60)
    assert [row["first_step"] for row in ledger(place, "start")] == [1, 11]
    acts = [e for e in world.events(job) if isinstance(e, PersonAct)]
    assert [act.act for act in acts] == ["resume", "resume"]
    assert acts[0].parameters["command"] == acts[1].parameters["command"]


def test_two_persons_at_once_make_one_start(world: World) -> None:
    world.executor()
    started, place = world.train("--fault", "exception@15:1", armed=False)
    settled(world, started)
    argv = [sys.executable, "-P", "-m", "midwatch", "resume", started.spec.job, "--same", "--yes"]
    crew = [subprocess.Popen(argv, env=world.environment, stderr=subprocess.PIPE) for _ in range(2)]
    for each in crew:
        each.communicate(timeout=120)
    assert 0 in [each.returncode for each in crew]
    wait_for(lambda: bool(ledger(place, "done")), "it is done", 60)
    assert len(ledger(place, "start")) == 2
