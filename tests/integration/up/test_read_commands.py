"""`why`, `jobs`, `incidents` and `decisions` read what stands in the topics, to its present end."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from kafka import KafkaProducer

from embedded_stack import variables_of
from midwatch.agents.cli import run
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.agents.rulesets.outcomes import counts_hash, read_counts
from midwatch.streams.records import (
    Command,
    Decision,
    Finding,
    Forwarded,
    Heartbeat,
    Hit,
    Incident,
    Line,
    Origin,
    Outcome,
    SchedulerFact,
    Verdict,
    codec,
)
from midwatch.streams.services.reachable import kafka_options
from midwatch.streams.services.topic_admin import make_topics
from midwatch.streams.settings.schema import Settings

from .conftest import settings_of

JOB, CALM, BLIND = "night:me/gpt", "night:me/calm", "night:me/blind"
NOW = int(time.time() * 1000)
LINE = Line("NCCL timed out", "/logs/rank_3.log", 812, 4_000, 1.0, "n3", rank=3)
HIT = Hit("nccl_timeout", "cause", "nccl_timeout", "comms", "critical", True, LINE, 4_100, "g")
VERDICT = Verdict(
    "failed",
    "crash",
    "nccl_timeout",
    "comms",
    "nccl",
    True,
    LINE.text,
    LINE.path,
    812,
    "n3",
    3,
    rule=HIT.rule,
)
INCIDENT = Incident("i1", JOB, 1, "slurm:41:0", "settled", 1, VERDICT, (HIT,), opened_ms=NOW)
DECISION = Decision(JOB, 1, "i1", 1, "restart", "verdict", "transient", NOW, True, 1, 3, ("stall: excluded",))
COMMAND = Command("c" * 64, JOB, 1, 0, "restart", "slurm:41:0", "i1", 1, "r", 0, 0, "d", "s", "b", 1, 3)
DONE = Outcome(JOB, "c" * 64, 1, "restart", "done", "resumed", "41", "57", "slurm:57:0", 100, "i1")


class Topics:
    """A prefix of its own, and records put there."""

    def __init__(self, settings: Settings) -> None:
        self.names = settings.topic_names
        make_topics(settings)
        self._producer = KafkaProducer(**kafka_options(settings))

    def put(self, job: str, topic: str, record: object) -> None:
        value = record if isinstance(record, bytes) else codec.encode(record)
        self._producer.send(getattr(self.names, topic), key=job.encode(), value=value)

    def flush(self) -> None:
        self._producer.flush()

    def close(self) -> None:
        self._producer.close()


@pytest.fixture(scope="module")
def told(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A rescued job, a calm one and a blind one; the variables that name their topics."""
    prefix = f"read-{secrets.token_hex(4)}"
    topics = Topics(settings_of(stack, tmp_path_factory.mktemp("read"), TOPICS__PREFIX=prefix))
    for job in (JOB, CALM, BLIND):
        origin = Origin(job, "n3", 1, "slurm:57:0" if job == JOB else "slurm:41:0", "b", "s")
        topics.put(job, "events", Heartbeat(origin, 1, 0.0, 0.0, 60.0, True, 0))
    topics.put(JOB, "events", SchedulerFact(JOB, "slurm:41:0", "41", "running", "failed", True, exit_code=1))
    topics.put(JOB, "incidents", INCIDENT)
    topics.put(JOB, "decisions", DECISION)
    topics.put(JOB, "commands", COMMAND)
    topics.put(JOB, "events", DONE)
    topics.put(JOB, "incidents", Forwarded(DONE))
    topics.put(BLIND, "incidents", Finding(BLIND, 1, "blind", True, NOW, "no quorum of beats"))
    topics.put(JOB, "incidents", b'{"record": "of the future", "v": 99}')
    topics.flush()
    topics.close()
    return variables_of(stack, TOPICS__PREFIX=prefix)


Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(
    told: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Ask:
    for name in [name for name in os.environ if name.startswith("MIDWATCH_")]:
        monkeypatch.delenv(name)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    # A key in the home of whoever runs this would make the unsigned command a stranger's.
    monkeypatch.setenv("MIDWATCH_STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)

    def asked(*arguments: str) -> tuple[int, str, str]:
        code = run(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return asked


@pytest.mark.capability("S000-01")
@pytest.mark.parametrize("name", [JOB, "gpt", "57"])
def test_why_answers_by_name_by_run_and_by_a_scheduler_s_id(ask: Ask, name: str) -> None:
    code, out, err = ask("why", name)
    assert code == 0, "it was rescued, nothing stands"
    assert "/logs/rank_3.log:812" in out
    assert "near miss" in out
    assert "id 41 → 57" in out
    assert "running → failed, id 41, exit code 1" in out
    assert "this midwatch cannot read 1 record(s)" in err


def test_why_json_is_versioned(ask: Ask) -> None:
    _, out, _ = ask("why", JOB, "--json")
    body = json.loads(out)
    assert (body["version"], body["job"], body["unreadable"]) == (1, JOB, 1)
    assert body["attempts"][0]["outcomes"][0]["new_native_id"] == "57"


def test_why_of_a_job_that_only_beats(ask: Ask) -> None:
    code, out, _ = ask("why", CALM)
    assert code == 0
    assert out.startswith(f"{CALM}  running")


@pytest.mark.capability("X-14")
def test_why_of_a_blind_job_says_so(ask: Ask) -> None:
    _, out, _ = ask("why", "blind")
    assert out.startswith(f"{BLIND}  blind")
    assert "no quorum of beats: midwatch concludes nothing from silence" in out


def test_jobs_incidents_and_decisions_list_them(ask: Ask) -> None:
    code, out, _ = ask("jobs")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [
        [BLIND, "blind"],
        [CALM, "running"],
        [JOB, "running"],
    ]
    _, out, _ = ask("incidents", "--json")
    assert [(row["stands"], row["incident"]["id"]) for row in json.loads(out)["incidents"]] == [(False, "i1")]
    _, out, _ = ask("decisions", "gpt")
    assert "restart attempt 1 of 3, policy verdict: transient" in out
    assert "near miss: stall: excluded" in out


def test_an_incident_that_stands_is_exit_code_1(
    ask: Ask, stack: Endpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"stands-{secrets.token_hex(4)}"
    topics = Topics(settings_of(stack, tmp_path, TOPICS__PREFIX=prefix))
    topics.put(JOB, "incidents", INCIDENT)
    topics.flush()
    topics.close()
    monkeypatch.setenv("MIDWATCH_TOPICS__PREFIX", prefix)
    for command in (["why", JOB], ["jobs"], ["incidents"]):
        assert ask(*command)[0] == 1


def test_outcomes_counts_how_restarts_ended_and_writes_the_file_of_the_setting(
    ask: Ask, stack: Endpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"outcomes-{secrets.token_hex(4)}"
    topics = Topics(settings_of(stack, tmp_path, TOPICS__PREFIX=prefix))
    again = replace(INCIDENT, id="i2", attempt=2, incarnation="slurm:57:0", verdict=replace(VERDICT, step=9))
    for record in (INCIDENT, Forwarded(DONE), again):
        topics.put(JOB, "incidents", record)
    topics.flush()
    topics.close()
    monkeypatch.setenv("MIDWATCH_TOPICS__PREFIX", prefix)
    assert ask("outcomes")[:2] == (0, "nccl_timeout/transient/unstepped  1 of 1 passed\n")
    file = tmp_path / "outcomes.json"
    code, out, _ = ask("outcomes", "--json", "--output", str(file))
    counts = read_counts(file.read_bytes(), str(file))
    assert (code, counts) == (0, {"nccl_timeout/transient/unstepped": (1, 1)})
    assert json.loads(out)["hash"] == counts_hash(counts)


@pytest.mark.capability("S002-32")
def test_a_job_that_nobody_knows_is_a_usage_error(ask: Ask) -> None:
    code, _, err = ask("why", "nobody")
    assert code == 2
    assert "`midwatch jobs` lists the known jobs" in err


def test_without_topics_the_error_says_who_makes_them(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDWATCH_TOPICS__PREFIX", "absent")
    code, _, err = ask("jobs")
    assert code == 4
    assert "the topic absent." in err
