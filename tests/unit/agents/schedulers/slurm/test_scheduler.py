"""The driver never takes silence for absence, and never acts on a job that is not the one meant."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from midwatch.agents.schedulers import cluster
from midwatch.agents.schedulers.base import ClusterUnreachable, StartSpec
from midwatch.agents.schedulers.calls import CallAnswer, environment
from midwatch.agents.schedulers.slurm.scheduler import SlurmCluster
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.services.ray_jobs import HeadAnswer, RayHead

KEY = "0123456789abcdef0123456789abcdef"
UNKNOWN = CallAnswer(1, "", "slurm_load_jobs error: Invalid job id specified")
CONFIG = (
    "Configuration data as of 2026-01-05T10:00:30\n"
    "AccountingStorageType = accounting_storage/slurmdbd\nBOOT_TIME = 2026-01-05T09:00:00\n"
)


def row(native: str, word: str, restarts: int = 0, key: str = KEY) -> str:
    return f"{native} |{word} |{restarts} |0 |N/A |None |root |mw:{key}"


@dataclass
class Script:
    """Answers each program from a table; keeps what was asked."""

    answers: Mapping[str, CallAnswer]
    asked: list[list[str]] = field(default_factory=list)
    environments: list[dict[str, str]] = field(default_factory=list)
    umasks: list[int] = field(default_factory=list)
    files: list[tuple[int, bytes]] = field(default_factory=list)  # number and content of each descriptor

    def run(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        cwd: str | None = None,
        timeout: float,
        descriptors: tuple[int, ...] = (),
        umask: int = -1,
    ) -> CallAnswer:
        del cwd, timeout
        self.environments.append(dict(environment))
        self.files += [(number, os.pread(number, 10_000, 0)) for number in descriptors]
        self.umasks.append(umask)
        self.asked.append(list(argv))
        found = self.answers.get(" ".join(argv[:2])) or self.answers.get(argv[0])
        if found is None:
            raise FileNotFoundError(2, "No such file or directory", argv[0])
        return found

    def spawn(self, argv: Sequence[str], environment: Mapping[str, str], **about: object) -> int:
        raise AssertionError(f"SLURM's driver spawns nothing: {argv} {environment} {about}")

    def signal_group(self, group: int, number: signal.Signals) -> None:
        raise AssertionError(f"SLURM's driver signals nothing: {group} {number}")

    def request(
        self, head: RayHead, method: str, path: str, body: bytes | None, *, timeout: float
    ) -> HeadAnswer:
        raise AssertionError(f"SLURM's driver asks no Ray head: {head} {method} {path} {body!r} {timeout}")

    def programs(self) -> list[str]:
        return [argv[0] for argv in self.asked]


def slurm(**answers: CallAnswer) -> tuple[SlurmCluster, Script]:
    script = Script({name.replace("_", " "): answer for name, answer in answers.items()})
    return SlurmCluster("lab", script), script


@pytest.mark.parametrize(
    "answer",
    [
        CallAnswer(1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"),
        CallAnswer(None, "", "no answer within 25 s"),
        CallAnswer(0, "a banner of the site\n", ""),
    ],
)
def test_a_look_without_a_usable_answer_is_an_error(answer: CallAnswer) -> None:
    driver, _ = slurm(squeue=answer)
    with pytest.raises(ClusterUnreachable) as caught:
        driver.find(KEY)
    assert caught.value.exit_code == 4
    assert driver.state("slurm:7:0").kind == "unknown"


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (CallAnswer(1, "", "sbatch: error: Unable to open file train.sh"), "refused"),
        (
            CallAnswer(1, "", "sbatch: error: Batch job submission failed: Invalid qos specification"),
            "refused",
        ),
        (CallAnswer(1, "", "sbatch: error: Batch job submission failed: Socket timed out"), "unclear"),
        (CallAnswer(None, "", "no answer within 30 s"), "unclear"),
        (CallAnswer(-9, "", "sbatch: error: half a line"), "unclear"),
        (CallAnswer(0, "12;cluster\n", ""), "done"),
    ],
)
def test_what_sbatch_says_is_a_hint(answer: CallAnswer, result: str) -> None:
    driver, _ = slurm(sbatch=answer)
    assert driver.submit_held(StartSpec(("sbatch", "train.sh"), "/"), KEY).result == result


def test_a_missing_squeue_is_an_error_that_says_so() -> None:
    driver, _ = slurm()
    with pytest.raises(ClusterUnreachable, match="squeue gave no usable answer: it cannot be started"):
        driver.sweep()


def test_what_the_queue_forgot_is_asked_of_accounting() -> None:
    driver, script = slurm(
        squeue=UNKNOWN, scontrol=CallAnswer(0, CONFIG, ""), sacct=CallAnswer(0, "TIMEOUT|0:0\n", "")
    )
    state = driver.state("slurm:7:0")
    assert (state.word, state.mode) == ("TIMEOUT", "timeout")
    assert script.asked[-1][:8] == ["sacct", "-n", "-P", "-X", "-D", "-j", "7", "-o"]


def test_accounting_that_does_not_answer_leaves_it_unknown() -> None:
    driver, _ = slurm(
        squeue=UNKNOWN, scontrol=CallAnswer(0, CONFIG, ""), sacct=CallAnswer(1, "", "sacct: error")
    )
    assert driver.state("slurm:7:0").kind == "unknown"


def test_accounting_that_knows_nothing_is_no_proof_of_an_end() -> None:
    driver, _ = slurm(squeue=UNKNOWN, scontrol=CallAnswer(0, CONFIG, ""), sacct=CallAnswer(0, "", ""))
    assert driver.state("slurm:7:0").kind == "absent"


@pytest.mark.parametrize(
    ("shown", "complaint"),
    [
        (row("7", "RUNNING", restarts=1), "meant for slurm:7:0, but SLURM shows slurm:7:1"),
        (row("7", "RUNNING", key="f" * 32), "does not carry the key"),
    ],
)
def test_an_act_meant_for_another_start_is_not_done(shown: str, complaint: str) -> None:
    driver, script = slurm(squeue=CallAnswer(0, shown, ""))
    for act in (driver.cancel, driver.release):
        hint = act("slurm:7:0", KEY)
        assert hint.result == "refused"
        assert complaint in hint.text
    assert set(script.programs()) == {"squeue"}


def test_no_act_without_a_look() -> None:
    driver, script = slurm(
        squeue=CallAnswer(None, "", "no answer within 25 s"), scancel=CallAnswer(0, "", "")
    )
    assert driver.cancel("slurm:7:0").result == "unclear"
    assert script.programs() == ["squeue"]


def test_a_text_that_is_no_id_reaches_no_program() -> None:
    driver, script = slurm()
    assert driver.cancel("slurm:7 8:0").result == "refused"
    assert script.asked == []


def test_another_users_job_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, script = slurm(sbatch=CallAnswer(0, "12\n", ""))
    spec = StartSpec(("sbatch", "train.sh"), "/", user="somebody-else")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert driver.submit_held(spec, KEY).result == "refused"
    assert script.asked == []
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert driver.submit_held(spec, KEY).result == "done"
    assert "--uid=somebody-else" in script.asked[0]


def test_the_environment_is_a_short_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBATCH_ACCOUNT", "x")
    monkeypatch.setenv("MIDWATCH_REDIS_PASSWORD", "x")
    monkeypatch.setenv("SLURM_CONF", "/etc/site.conf")
    made = environment({"MIDWATCH_JOB": "lab:anna/run", "SLURM_JOB_ID": "7", "SBATCH_QOS": "x"})
    assert made["MIDWATCH_JOB"] == "lab:anna/run"
    assert made["SLURM_CONF"] == "/etc/site.conf"
    assert not {"SBATCH_ACCOUNT", "MIDWATCH_REDIS_PASSWORD", "SLURM_JOB_ID", "SBATCH_QOS"} & set(made)


def test_a_jobs_variables_reach_sbatch_by_a_file_alone() -> None:
    driver, script = slurm(sbatch=CallAnswer(0, "12\n", ""))
    variables = {"TOKEN": "secret", "LD_PRELOAD": "x.so", "SLURM_UMASK": "0027"}
    spec = StartSpec(("sbatch", "train.sh"), "/", variables, by_file=True)
    assert driver.submit_held(spec, KEY).result == "done"
    ((number, content),) = script.files
    assert content == b"TOKEN=secret\0LD_PRELOAD=x.so\0SLURM_UMASK=0027\0"
    assert [f"--export-file={number}", "--export=ALL", "train.sh"] == script.asked[0][-3:]
    assert not script.environments[0].keys() & variables.keys()
    assert script.umasks == [0o27]
    assert "secret" not in repr(spec)


def test_clusters_are_made_by_kind(tmp_path: Path) -> None:
    _, script = slurm()
    assert cluster("slurm", "lab", tmp_path, script).holds
    assert not cluster("local", "here", tmp_path, script).holds
    with pytest.raises(ConfigurationError, match="no driver for clusters of kind 'pbs'"):
        cluster("pbs", "x", tmp_path, script)
