"""Specs of an earlier midwatch, which hold variables, are replaced job by job."""

from __future__ import annotations

import getpass
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from midwatch.agents.executor import environments
from midwatch.agents.schedulers.local import effect_file
from midwatch.agents.signing import Signer, ensure_keys
from midwatch.streams.errors import ServiceUnreachable
from midwatch.streams.records import Spec

JOBS = ("local:ann/first", "local:ann/second", "local:ann/third")


class Topic:
    """What the executor reads the specs from, and writes them to. It does not take those in `refused`."""

    def __init__(self, specs: tuple[Spec, ...], refused: tuple[str, ...] = ()) -> None:
        self.specs, self.refused, self.taken = specs, refused, list[Spec]()

    def open_specs(self) -> tuple[Spec, ...]:
        return self.specs

    def spec(self, spec: Spec) -> None:
        if spec.job in self.refused:
            raise ServiceUnreachable("Kafka did not take it", where="broker", remedy="look at the broker")
        self.taken.append(spec)


def spec_of(job: str) -> Spec:
    return Spec(
        job=job,
        cluster="local",
        argv=("python", "train.py"),
        cwd="/toy",
        environment={"NCCL_DEBUG": "INFO"},
        user=getpass.getuser(),
        log_paths=(),
        checkpoint_directory="",
        policy="verdict",
        armed=True,
    )


def started(directory: Path, job: str, number: int) -> None:
    argv = ("shim", "--job", job, "--", "python", "train.py")
    record = effect_file.Record(f"{number:08d}", number, 1, "boot", "ann", argv, "/toy", float(number))
    assert effect_file.create(directory, record)


def replaced(directory: Path, topic: Topic, signer: Signer) -> list[str]:
    of_kafka: Any = topic
    environments.replace_open_specs(directory, of_kafka, of_kafka, signer)
    return [spec.job for spec in topic.taken]


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    for number, job in enumerate(JOBS):
        started(tmp_path, job, number)
    return ensure_keys(tmp_path)


def test_one_that_cannot_be_replaced_holds_up_no_other(
    tmp_path: Path, signer: Signer, capsys: pytest.CaptureFixture[str]
) -> None:
    specs = tuple(signer.sign(spec_of(job)) for job in JOBS)
    assert replaced(tmp_path, Topic(specs, refused=JOBS[:1]), signer) == list(JOBS[1:])
    logged = capsys.readouterr().err.splitlines()
    assert logged == [
        "local:ann/first: its spec still holds variables, and cannot be replaced: "
        "broker: Kafka did not take it; look at the broker",
        "specs of an earlier midwatch held variables, and files of their user hold them now: 2",
    ]


def test_the_starts_are_read_once_for_all_jobs(
    tmp_path: Path, signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, read_all = list[Path](), effect_file.read_all

    def counted(directory: Path) -> tuple[effect_file.Record, ...]:
        looks.append(directory)
        return read_all(directory)

    monkeypatch.setattr(environments, "read_all", counted)
    specs = tuple(signer.sign(spec_of(job)) for job in (*JOBS, "local:ann/elsewhere"))
    assert replaced(tmp_path, Topic(specs), signer) == list(JOBS)
    assert looks == [tmp_path]


def test_a_spec_that_is_not_signed_and_one_of_another_user_stay(tmp_path: Path, signer: Signer) -> None:
    others = signer.sign(replace(spec_of(JOBS[1]), user="somebody-else"))
    assert replaced(tmp_path, Topic((spec_of(JOBS[0]), others)), signer) == []
