"""The file with a job's environment: local jobs have one too, and it goes when its spec goes."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from executor_world import World
from midwatch.agents.signing import spec_hash
from midwatch.streams.records import Spec
from midwatch.streams.records.codec import decode, encode
from processes import wait_for, written

pytestmark = pytest.mark.integration

SECRET = "a-secret-of-the-person"
NOTE = (
    "import os, sys; open(sys.argv[1], 'a').write(os.environ['HF_TOKEN'] + os.environ['NCCL_DEBUG'] + '\\n')"
)


def test_a_local_job_gets_its_variables_at_each_start_and_its_spec_holds_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", SECRET)
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    world.executor()
    found = world.directory / "found"
    started = world.run(sys.executable, "-c", f"{NOTE}; sys.exit(1)", str(found), variables=("HF_TOKEN",))
    world.await_end(started)
    order = world.order(started)
    world.send(order)
    world.await_outcome(order, "done")
    wait_for(lambda: written(found) and len(found.read_text().splitlines()) == 2, "the second start")
    assert found.read_text() == f"{SECRET}INFO\n" * 2
    assert started.spec.environment == {}
    for topic in world.settings.topic_names.specifications():
        assert all(SECRET.encode() not in (message.value or b"") for message in world._read(topic.name))
    assert SECRET not in world.log.read_text()


def test_a_local_job_whose_environment_was_changed_is_not_started_again(world: World) -> None:
    world.executor()
    started = world.run("false")
    file = Path(started.spec.environment_file)
    file.write_bytes(file.read_bytes() + b"LD_PRELOAD=/tmp/x\0")
    world.await_end(started)
    order = world.order(started)
    world.send(order)
    reason = world.await_outcome(order, "failed", "done").reason
    assert "was changed after it was signed; start the job" in reason
    assert len(world.effects()) == 1


def test_an_environment_is_deleted_with_its_spec(world: World) -> None:
    replaced, kept, deleted = (world.run("true", job=name) for name in ("again", "kept", "deleted"))
    again = world.run("true", job="again")
    specs = world.settings.topic_names.specs
    world._producer.send(specs, key=deleted.spec.job.encode(), value=None).get(timeout=30)
    files = [Path(one.spec.environment_file) for one in (replaced, deleted, again, kept)]
    for file in files:
        os.utime(file, (time.time() - 7200,) * 2)
    young = world.run("true", job="young")
    world._producer.send(specs, key=young.spec.job.encode(), value=None).get(timeout=30)
    world.executor()
    wait_for(lambda: not any(file.exists() for file in files[:2]), "each is deleted with its spec")
    assert [file.exists() for file in files] == [False, False, True, True]
    assert Path(young.spec.environment_file).exists(), "its spec might have been on its way"


def test_a_spec_with_variables_is_replaced_by_the_executor_that_started_its_job(world: World) -> None:
    """And a command that names the old one is carried out, from the file."""
    found = world.directory / "found"
    note = NOTE.replace("os.environ['HF_TOKEN'] + ", "")
    started = world.run(sys.executable, "-c", f"{note}; sys.exit(1)", str(found), job="open")
    plain = replace(started.spec, environment={"NCCL_DEBUG": "a-word-of-the-person"}, environment_file="")
    held = world.signer.sign(plain)
    specs = world.settings.topic_names.specs
    world._producer.send(specs, key=held.job.encode(), value=encode(held)).get(timeout=30)

    elsewhere = world.executor(state=world.directory / "another host")
    elsewhere.terminate()
    elsewhere.wait(timeout=30)
    assert _last(world, held.job) == held, "an executor of another host could not hand its file over"

    world.executor()
    wait_for(lambda: _last(world, held.job) != held, "it is replaced")
    closed = _last(world, held.job)
    assert (closed.environment, closed.replaces) == ({}, spec_hash(held))
    world.await_end(started)
    order = world.order(replace(started, spec=held))
    world.send(order)
    world.await_outcome(order, "done")
    wait_for(
        lambda: written(found) and found.read_text().endswith("a-word-of-the-person\n"), "the second start"
    )
    assert "a-word-of-the-person" not in world.log.read_text()


def _last(world: World, job: str) -> Spec:
    values = [m.value for m in world._read(world.settings.topic_names.specs) if m.key == job.encode()]
    spec = decode(values[-1])
    assert isinstance(spec, Spec)
    return spec
