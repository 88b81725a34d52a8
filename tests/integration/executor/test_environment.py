"""The file with a job's environment: local jobs have one too, and it goes when its spec goes."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from executor_world import World
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
    assert "was changed after it was signed" in world.await_outcome(order, "failed", "done").reason
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
    wait_for(lambda: not files[0].exists(), "it is deleted with its spec")
    assert [file.exists() for file in files] == [False, False, True, True]
    assert Path(young.spec.environment_file).exists(), "its spec might have been on its way"
