"""Jobs that end in every way on the real chain: an export of each says, field by field, what the stream said.

With MIDWATCH_TEST_KEEP naming a directory, the recordings and what the stream said of them are written there:
so `tests/replay/` was made.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from integration.chain.installation import Installation, Job, installation, midwatch
from integration.chain.same_again import Again, same_again
from integration.chain.training import PROCESSES, Training
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Decision, Incident
from processes import wait_for
from side_by_side import Scenes

SOON = 150.0
LIMITS = ("--limit=training=6s", "--limit=startup=120s")
QUICK = ("--iterations=40", "--iteration-ms=60", "--save-every=10")


@pytest.fixture(scope="module")
def watch(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("watch"), stack) as made:
        for name in PROCESSES:
            made.start(name)
        made.ready()
        yield made


def _nothing_stays(watch: Installation, tmp_path: Path) -> None:
    watch.finish_jobs(beneath=tmp_path)


scenes = Scenes()
played = scenes.fixture("watch", after=_nothing_stays)


def _name(job: Job) -> str:
    wait_for(lambda: job.story() is not None, "the job is known", SOON)
    story = job.story()
    assert story is not None
    return story.job


def _decided(job: Job) -> list[str]:
    return [decision.action for decision in job.decisions() if decision.incident]


def _judged(watch: Installation, job: Job, case: str) -> tuple[list[Incident], list[Decision]]:
    """Export and replay, by the commands; every field is that of the topics, which a living job adds to."""
    name, file = _name(job), watch.directory / f"{case}.jsonl"
    before = same_again(watch.settings, name)
    assert before.derived.decisions
    told: dict[str, Any] = {}

    def exported() -> bool:
        """An export of a living job may hold an event to which the workers have not come yet."""
        done = _asked(watch, "export", job.name, "-o", str(file))
        assert done.returncode == 0, done.stderr
        told.update(_replayed(watch, file))
        assert all("incidents lack it" in each for each in told["differences"]), told["differences"]
        return not told["differences"]

    wait_for(exported, "an export without differences", SOON)
    after = same_again(watch.settings, name)
    for kind, earlier, later in (
        ("incidents", _incidents(before), _incidents(after)),
        ("decisions", before.decided, after.decided),
    ):
        assert len(told[kind]) >= len(earlier), "all that the topics held before it was exported"
        assert told[kind] == _plain(later)[: len(told[kind])]
    if kept := os.environ.get("MIDWATCH_TEST_KEEP"):
        _keep(Path(kept), case, file, watch, told["decisions"])
    return before.incidents, list(before.derived.decisions)


def _incidents(again: Again) -> list[Incident]:
    return [record for record in again.said if isinstance(record, Incident)]


def _plain(records: Sequence[Incident | Decision]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(records))


def _replayed(watch: Installation, file: Path) -> dict[str, Any]:
    done = _asked(watch, "replay", "--recording", str(file), "--json")
    assert done.returncode in (0, 1), done.stderr
    told: dict[str, Any] = msgspec.json.decode(done.stdout)
    return told


def _asked(watch: Installation, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: scenes are threads of one process, and pytest moves its stdout."""
    return subprocess.run(
        midwatch(*arguments),
        env=watch.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def _keep(directory: Path, case: str, file: Path, watch: Installation, decisions: object) -> None:
    """The recording with nobody's paths in it, and what was decided."""
    homes = {
        str(watch.directory.parent): "/jobs",
        str(Path(__file__).resolve().parents[3]): "/opt/midwatch",
    }
    text = file.read_text()
    said = msgspec.json.format(msgspec.json.encode(decisions), indent=1).decode()
    for mine, anyones in homes.items():
        text, said = text.replace(mine, anyones), said.replace(mine, anyones)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{case}.jsonl").write_text(text)
    (directory / f"{case}.decisions.json").write_text(said + "\n")


@scenes.scene
def test_a_failure_that_was_restarted(watch: Installation, tmp_path: Path) -> None:
    _failed(watch, tmp_path, "nccl@25:1", ["restart", "none"], "nccl_timeout")


@scenes.scene
def test_a_failure_that_was_not_restarted(watch: Installation, tmp_path: Path) -> None:
    _failed(watch, tmp_path, "oom@25:1", ["stop"], "oom")


def _failed(watch: Installation, tmp_path: Path, fault: str, actions: list[str], error_type: str) -> None:
    training = Training(watch, tmp_path / "job", (*QUICK, f"--fault={fault}"))
    try:
        job = training.start()
        wait_for(lambda: _decided(job) == actions, f"decided: {actions}", SOON)
        incidents, _ = _judged(watch, job, fault.partition("@")[0])
        assert next(i for i in incidents if i.state == "settled").verdict.error_type == error_type
    finally:
        training.end()


@scenes.scene
def test_a_person_who_cancels(watch: Installation, tmp_path: Path) -> None:
    training = Training(watch, tmp_path / "job", ("--iterations=100000", "--iteration-ms=60"))
    for each in ("checkpoints", "logs"):
        (training.directory / each).mkdir(parents=True)
    about = ("--wait", f"--job={training.name}", "--act", f"--log={training.directory}/logs")
    waiting = subprocess.Popen(
        [
            *midwatch("run", *about),
            *("--", sys.executable, "-m", "midwatch.agents.drill.trainer", "--ranks=2"),
            *(f"--checkpoint-dir={training.directory}/checkpoints", *training.options),
            f"--log-dir={training.directory}/logs",
        ],
        cwd=training.directory,
        env=watch.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    job = Job(watch, training.name, training.directory, ())
    try:
        wait_for(lambda: job.step() > 5, "progress is seen", SOON)
        waiting.send_signal(signal.SIGINT)
        wait_for(lambda: _decided(job) == ["none"], "it is known for what it is", SOON)
        _, decisions = _judged(watch, job, "cancelled")
        assert "cancelled it" in decisions[-1].reason
    finally:
        waiting.kill()
        waiting.wait()
        training.end()


def _three_nodes(watch: Installation, directory: Path) -> Job:
    job = watch.run(directory, *LIMITS)
    job.ship()
    wait_for(lambda: job.step() > 10, "progress is seen", SOON)
    wait_for(lambda: (s := job.story()) is not None and len(s.nodes) == 4, "every node is heard", SOON)
    return job


@scenes.scene
def test_a_hang(watch: Installation, tmp_path: Path) -> None:
    job = _three_nodes(watch, tmp_path / "job")
    job.tell("hang")
    wait_for(lambda: job.starts() == 2, "a second start", SOON)
    incidents, _ = _judged(watch, job, "hang")
    assert next(i for i in incidents if i.state == "settled").verdict.mode == "stall"


@scenes.scene
def test_a_watch_that_is_blind(watch: Installation, tmp_path: Path) -> None:
    job = _three_nodes(watch, tmp_path / "job")
    job.shipper("n0").kill()
    job.tell("hang")
    wait_for(lambda: any("blind" in d.reason for d in job.decisions()), "blindness is found", SOON)
    incidents, decisions = _judged(watch, job, "blind")
    assert incidents == []
    assert {d.action for d in decisions} <= {"hold", "none"}
    assert all(d.command == "" for d in decisions)


@scenes.scene
def test_a_node_that_never_answers_again(watch: Installation, tmp_path: Path) -> None:
    job = _three_nodes(watch, tmp_path / "job")
    job.shipper("n2").kill()
    wait_for(lambda: bool(job.findings("node_silent:n2")), "the node is missed", SOON)
    job.end()
    wait_for(lambda: bool(_decided(job)), "the end is judged", SOON)
    incidents, _ = _judged(watch, job, "given_up")
    verdict = next(i for i in incidents if i.state == "settled").verdict
    assert (verdict.given_up, verdict.complete) == (("n2",), False)
