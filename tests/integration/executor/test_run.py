"""`midwatch run`, `arm` and `disarm` as a person types them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time

import pytest

from executor_world import World, ledger, midwatch
from midwatch.streams.records import Chunk, Heartbeat, PersonAct
from midwatch.streams.records.codec import decode_log
from processes import wait_for

pytestmark = pytest.mark.integration


def test_a_job_is_started_and_its_lines_beats_and_end_arrive(world: World) -> None:
    world.executor()
    done = midwatch(world, "run", "--wait", "--job", "hello", "--", "sh", "-c", "echo one line; exit 7")
    assert done.returncode == 7
    assert done.stdout == "one line\n"
    assert "/hello is started as" in done.stderr
    job = re.search(r"midwatch: (\S+) is started", done.stderr)
    assert job
    wait_for(lambda: any(f.ended for f in world.facts(job[1])), "the watcher tells the end")
    (end,) = [f for f in world.facts(job[1]) if f.ended]
    assert (end.exit_code, end.mode) == (7, "crash")
    shipped = [decode_log(*message) for message in world.logs()]
    assert any(isinstance(s, Chunk) and b"one line" in s.text for s in shipped)
    finals = [s for s in shipped if isinstance(s, Heartbeat) and s.final]
    assert finals
    assert {s.origin.incarnation for s in shipped} == {end.incarnation}
    assert {s.origin.job for s in shipped} == {job[1]}


def test_ctrl_c_is_a_person_who_ended_it(world: World) -> None:
    world.executor()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "midwatch", "run", "--wait", "--job", "long", "--", "sleep", "300"],
        env=world.environment,
        cwd=world.directory,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: any(r.code is None for r in world.effects()), "the job runs")
    assert process.stderr
    (job,) = re.findall(r"midwatch: (\S+) is started", process.stderr.readline() + process.stderr.readline())
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 143
    process.stderr.close()
    wait_for(lambda: any(f.ended for f in world.facts(job)), "the watcher tells the end")
    (end,) = [f for f in world.facts(job) if f.ended]
    assert end.by_person == job.partition(":")[2].partition("/")[0]


def test_json_tells_what_a_script_needs(world: World) -> None:
    done = midwatch(world, "run", "--json", "--act", "--", "sleep", "300")
    told = json.loads(done.stdout)
    assert told["version"] == 1
    assert told["armed"] is True
    assert told["job"].endswith(f"/{told['native_id']}"), "a job without a name has its native id"
    assert [str(r.pid) for r in world.effects()] == [told["native_id"]]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--limit", "trainig=30s", "--", "true"], 2, "a phase is one of"),
        (["--limit", "training=30", "--", "true"], 2, "not a duration"),
        (["--job", "a b", "--", "true"], 3, "cannot be part of a job's name"),
        (["--wait", "--", "sbatch", "x.sh"], 2, "for a local job only"),
        (["--", "sbatch", "absent.sh"], 2, "cannot be read"),
        (["--follow", "--", "true"], 2, "only a job of sbatch waits for another"),
        (["--log=a", "--", "sbatch", "-a1-2", "--wrap=true"], 2, "the tasks of an array would share it"),
        (["--", "sbatch", "--array=x", "--wrap=true"], 2, "it names no indices"),
    ],
)
def test_a_mistake_on_the_line_starts_nothing(world: World, words: list[str], code: int, says: str) -> None:
    done = midwatch(world, "run", *words)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert world.effects() == ()


def test_a_program_that_is_not_there_is_an_end_with_127(world: World) -> None:
    assert midwatch(world, "run", "--wait", "--", "no-such-program-here").returncode == 127


def test_arm_lets_the_executor_act_and_disarm_stops_it(world: World) -> None:
    world.executor()
    started, checkpoints = world.train("--fault", "exception@15:1", armed=False)
    world.await_end(started)
    job = started.spec.job
    assert midwatch(world, "arm", job).returncode == 0
    assert midwatch(world, "disarm", job).returncode == 0
    first = world.order(started)
    world.send(first)
    assert "disarmed by" in world.await_outcome(first, "refused", "accepted").reason
    assert midwatch(world, "arm", job).returncode == 0
    second = world.order(started, seq=2)
    world.send(second)
    assert world.await_outcome(second, "done", "refused").state == "done"
    assert [e.act for e in world.events(job) if isinstance(e, PersonAct)] == ["arm", "disarm", "arm"]
    wait_for(lambda: len(ledger(checkpoints, "start")) == 2, "the second start")


def test_the_job_finds_the_settings_of_the_line_that_started_it(world: World) -> None:
    told = ("--config", str(world.file), "--set", "ship.poll=0.1s")
    del world.environment["MIDWATCH_CONFIG"]
    done = midwatch(world, "run", "--wait", *told, "--job", "it", "--env", "WHO", "--", "env")
    words = done.stdout.splitlines()
    assert f"MIDWATCH_CONFIG={world.file}" in words
    assert "MIDWATCH_SHIP__POLL=0.1s" in words
    assert any(word.startswith("MIDWATCH_INCARNATION=local:") for word in words)


def test_a_job_of_another_user_is_not_started(world: World) -> None:
    done = midwatch(world, "run", "--job", "local:somebody-else/it", "--", "true")
    assert done.returncode == 2
    assert "somebody-else" in done.stderr
    assert world.effects() == ()


def test_without_kafka_nothing_is_started_and_the_remedy_is_told(world: World) -> None:
    began = time.monotonic()
    done = midwatch(world, "run", "--set", "kafka.bootstrap=127.0.0.1:1", "--", "true")
    assert done.returncode == 4
    assert "Kafka cannot be reached" in done.stderr
    assert time.monotonic() - began < 30
    assert world.effects() == ()


STEP = re.compile(
    r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (?P<job>\S+): (?P<change>.+? → \w+)(?:, (?P<rest>.*))?$"
)


@pytest.mark.capability("S001-50", "S001-51", "S001-53", "S001-54")
def test_every_step_of_a_rescue_is_one_line_with_its_time_reason_count_and_ids(world: World) -> None:
    world.executor()
    started, checkpoints = world.train("--fault", "hang@15:1")
    wait_for(lambda: bool(ledger(checkpoints, "fault")), "it hangs")
    order = world.order(started, restart_number=2)
    world.send(order)
    done = world.await_outcome(order, "done")
    wait_for(lambda: bool(ledger(checkpoints, "done")), "the training is done")
    old = started.incarnation.split(":")[1]
    lines = [m for m in STEP.finditer(world.log.read_text()) if "attempt 2 of 3" in (m["rest"] or "")]
    assert [m["change"] for m in lines] == [
        "restart → accepted",
        "running → cancel",
        "cancelled → submit",
        "restart → done",
    ]
    assert all("because " in m["rest"] and f"id {old} → " in m["rest"] for m in lines)
    assert f"id {old} → {done.new_native_id}, told to load the checkpoint of step 10" in lines[-1]["rest"]
