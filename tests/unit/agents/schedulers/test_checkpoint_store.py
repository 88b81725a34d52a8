"""Checkpoints in an object store are judged as those in a folder are. The store is a real server of S3."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto.server import ThreadedMotoServer

from checkpoint_shapes import hugging_face_folder, ray_run, torch_file
from midwatch.agents.launch.job_spec import RunRequest, spec_of
from midwatch.agents.schedulers import checkpoint_store
from midwatch.agents.schedulers.checkpoint_store import StoredPath, is_below, place
from midwatch.agents.schedulers.checkpoints import discover
from midwatch.agents.schedulers.resume import begin, newest, variables_to_choose
from midwatch.agents.training_monitor import find_latest_checkpoint
from midwatch.agents.training_monitor.errors import CheckpointNotFound
from midwatch.streams.errors import ConfigurationError, UsageError
from midwatch.streams.settings.file import load_settings

FIRST, SECOND = "checkpoint_2026-11-23_00-55-19.815468", "checkpoint_2026-11-23_00-55-20.351072"
TORN = "checkpoint_2026-11-23_00-55-37.613642"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "of-the-tests")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "of-the-tests")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        made = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        made.start()
        try:
            address = made.get_host_and_port()
            patch.setenv("AWS_ENDPOINT_URL", f"http://{address[0]}:{address[1]}")
            yield f"http://{address[0]}:{address[1]}"
        finally:
            made.stop()


@pytest.fixture
def bucket(server: str, request: pytest.FixtureRequest) -> str:
    """The URL of an empty bucket."""
    assert server
    name = f"b{abs(hash(request.node.name))}"
    _files(f"s3://{name}/x").mkdir(name)
    return f"s3://{name}"


def _files(url: str) -> Any:
    found = place(url)
    assert isinstance(found, StoredPath)
    return found.store.files


def upload(folder: Path, url: str) -> str:
    """Puts each file below the folder into the store, under the same name."""
    for path in folder.rglob("*"):
        if path.is_file():
            key = f"{url}/{path.relative_to(folder)}".removeprefix("s3://")
            _files(url).pipe_file(key, path.read_bytes())
    return url


@pytest.mark.capability("S000-11", "S002-05")
def test_the_newest_complete_checkpoint_of_ray_train_is_found_and_torn_ones_are_passed_over(
    bucket: str, tmp_path: Path
) -> None:
    folders = ray_run(tmp_path, {FIRST: {"step": 2}, SECOND: {"step": 4}})
    torch_file(tmp_path / TORN / "rank_0.pt")
    url = upload(tmp_path, f"{bucket}/jobs/run")
    point, notes = newest(url)
    assert point is not None
    assert (point.step, point.path, point.directory) == (4, f"{url}/{SECOND}", url)
    assert point.written_ms > 1_700_000_000_000
    why = "checkpoint_manager_snapshot.json does not name it: not all ranks have reported it"
    assert notes == (f"skips the checkpoint {url}/{TORN}: {why}",)
    file = torch_file(folders[1] / "model.pt")
    file.write_bytes(file.read_bytes()[:60])
    upload(tmp_path, url)
    point, notes = newest(url)
    assert (point.step if point else None, notes[1].endswith("model.pt was cut short")) == (2, True)


def test_other_layouts_pointers_and_nested_files_are_read_there_too(bucket: str, tmp_path: Path) -> None:
    for step in (10, 20):
        hugging_face_folder(tmp_path / f"checkpoint-{step}", step)
    torch_file(tmp_path / "checkpoint-30" / "optimizer.pt")
    url = upload(tmp_path, f"{bucket}/hf")
    assert find_latest_checkpoint(url) == f"{url}/checkpoint-20"
    for tag in ("global_step5", "global_step6"):
        torch_file(tmp_path / "ds" / tag / "mp_rank_00_model_states.pt")
    (tmp_path / "ds" / "latest").write_text("global_step5")
    url = upload(tmp_path / "ds", f"{bucket}/ds")
    found = discover(place(url))
    assert found.latest is not None
    assert (found.latest.path.name, [each.path.name for each in found.passed_over]) == (
        "global_step5",
        ["global_step6"],
    )


def test_a_start_that_waits_in_a_queue_chooses_from_the_store_when_it_begins(
    bucket: str, tmp_path: Path
) -> None:
    ray_run(tmp_path, {FIRST: {"step": 2}})
    url = upload(tmp_path, f"{bucket}/run")
    told = begin(
        ("train",), variables_to_choose(2, url, ("--load", "{checkpoint}", "--of", "{directory}")), restarts=0
    )
    assert told.argv == ("train", "--load", f"{url}/{FIRST}", "--of", url)
    assert told.environment["MIDWATCH_RESUME_FROM"] == f"{url}/{FIRST}"


def test_a_folder_that_is_not_there_holds_none_and_a_store_that_fails_is_no_empty_one(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CheckpointNotFound, match="there is no such directory"):
        find_latest_checkpoint(f"{bucket}/nowhere")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    point, (note,) = newest(f"{bucket}/run")
    assert (point, note.startswith("cannot read the checkpoints: ")) == (None, True)
    assert "127.0.0.1:9" in note


def test_only_paths_below_the_checkpoint_directory_count() -> None:
    run = place("s3://bucket/run/")
    assert str(run) == "s3://bucket/run"
    assert is_below(run / "checkpoint", run)
    assert not is_below(place("s3://bucket/run-2/checkpoint"), run)
    assert not is_below(run / "../other", run)
    assert not is_below(run, run)
    assert not is_below(Path("/bucket/run/checkpoint"), run)


@pytest.mark.usefixtures("server")
def test_a_spec_keeps_the_url_and_makes_a_path_absolute(tmp_path: Path) -> None:
    directories = []
    for given in ("s3://bucket/run/", "ckpt"):
        request = RunRequest(argv=("true",), cwd=tmp_path, checkpoint_directory=given)
        spec = spec_of(request, load_settings(None, environment={}), "local", "local:ann/run")
        directories.append(spec.checkpoint_directory)
    assert directories == ["s3://bucket/run", str(tmp_path / "ckpt")]


def test_another_store_or_no_bucket_is_refused() -> None:
    for url in ("gs://bucket/run", "s3://", "https://host/run"):
        with pytest.raises(UsageError, match="s3://BUCKET/FOLDER"):
            place(url)


def test_without_the_extra_an_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint_store._client.cache_clear()
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'midwatch\[s3\]'"):
        place("s3://bucket/run")
    point, (note,) = newest("s3://bucket/run")
    assert (point, "midwatch[s3]" in note) == (None, True)
    assert "\n" not in note, "it becomes part of a reason"


def test_a_directory_that_is_none_is_a_note_to_a_start_and_no_crash() -> None:
    point, (note,) = newest("gs://bucket/run")
    assert (point, note) == (
        None,
        "cannot read the checkpoints: gs://bucket/run: no directory for checkpoints; "
        "name a path, or s3://BUCKET/FOLDER",
    )
