"""A worker is known to its group by one name at every start of its `up`, and by no other's."""

from __future__ import annotations

import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch.agents.local.up.instance import instance_id
from midwatch.agents.local.up.processes import WORKERS, processes
from midwatch.streams.settings.kinds import Given, name
from midwatch.streams.settings.schema import Settings, TelemetrySettings, WorkerSettings


def test_the_name_outlives_a_restart_and_is_nobody_elses(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    assert instance_id(mine) == instance_id(mine)
    assert instance_id(mine) != instance_id(other)


def test_a_copied_state_directory_has_another_name_on_another_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = instance_id(tmp_path / "here")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    monkeypatch.setattr(socket, "gethostname", lambda: "another-host")
    assert instance_id(tmp_path / "there") != here


@pytest.mark.parametrize("host", ["node7", "node7.cluster.example", "a b/c:é", "", "x" * 300])
def test_any_host_gives_a_name_that_the_settings_take(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    made = instance_id(tmp_path)
    assert name().read(Given(made, tmp_path)) == made


def test_a_damaged_file_gives_a_new_name(tmp_path: Path) -> None:
    instance_id(tmp_path)
    for damage in (b"", b"\xff\xfe", b"short"):
        (tmp_path / "run" / "instance").write_bytes(damage)
        assert instance_id(tmp_path) == instance_id(tmp_path)


def test_each_worker_of_up_gets_it_unless_the_settings_name_one(tmp_path: Path) -> None:
    settings = Settings(state_directory=tmp_path)
    for given, wanted in (("", instance_id(tmp_path)), ("mine", "mine")):
        chosen = replace(settings, worker=WorkerSettings(instance_id=given))
        made = {each.name: each for each in processes(chosen, [], 0)}
        for worker in WORKERS:
            assert f"--set=worker.instance_id={wanted}" in made[worker].command
        assert not any("instance_id" in part for part in made["executor"].command)


def test_the_trace_process_runs_where_traces_have_a_receiver(tmp_path: Path) -> None:
    settings = Settings(state_directory=tmp_path)
    assert "trace" not in {each.name for each in processes(settings, [], 0)}
    on = replace(settings, telemetry=TelemetrySettings(otlp="http://127.0.0.1:4318"))
    assert "trace" in {each.name for each in processes(on, [], 0)}
