"""The latest complete checkpoint is found; a torn one never is, whatever points at it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoint_shapes import tensors_file
from house.cases import cases
from midwatch.agents.drill import trainer
from midwatch.agents.schedulers.checkpoints import Discovery, discover


def save_step(directory: Path, step: int, manifest: bool = True, point: bool = True) -> Path:
    folder = directory / f"step_{step}"
    folder.mkdir(parents=True)
    content = f"weights of step {step}".encode() * 9
    (folder / "shard_0.bin").write_bytes(content)
    if manifest:
        entry = {"file": "shard_0.bin", "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        (folder / "manifest.json").write_text(json.dumps({"shards": [entry]}))
    if point:
        (directory / "latest").unlink(missing_ok=True)
        (directory / "latest").symlink_to(folder.name)
    return folder


def save_megatron(directory: Path, iteration: int, point: bool = True) -> Path:
    folder = directory / f"iter_{iteration:07d}"
    folder.mkdir(parents=True)
    for name in ("__0_0.distcp", "__1_0.distcp", "common.pt", ".metadata", "metadata.json"):
        (folder / name).write_text("content")
    if point:
        (directory / "latest_checkpointed_iteration.txt").write_text(f"{iteration}\n")
    return folder


def step_of(found: Discovery) -> int | None:
    return found.latest.step if found.latest else None


def reasons(found: Discovery) -> dict[str, str]:
    return {passed.path.name: passed.reason for passed in found.passed_over}


@pytest.mark.capability("S000-11")
def test_the_newest_complete_step_is_found_with_its_age(tmp_path: Path) -> None:
    for step in (9, 10, 100):
        save_step(tmp_path, step)
    found = discover(tmp_path)
    assert step_of(found) == 100
    assert found.latest is not None
    assert found.latest.path == tmp_path / "step_100"
    assert found.latest.written_at == (tmp_path / "step_100").stat().st_mtime
    assert found.passed_over == ()


@pytest.mark.capability("S002-28")
def test_steps_without_a_manifest_are_trusted_up_to_latest(tmp_path: Path) -> None:
    save_step(tmp_path, 10, manifest=False)
    save_step(tmp_path, 20, manifest=False)
    save_step(tmp_path, 30, manifest=False, point=False)
    found = discover(tmp_path)
    assert step_of(found) == 20
    assert reasons(found) == {"step_30": "newer than `latest`, and no manifest.json proves it complete"}


def test_a_complete_one_that_latest_did_not_reach_any_more_is_found(tmp_path: Path) -> None:
    save_step(tmp_path, 10)
    save_step(tmp_path, 20, point=False)
    assert step_of(discover(tmp_path)) == 20


def test_latest_on_a_torn_one_does_not_help_it(tmp_path: Path) -> None:
    save_step(tmp_path, 10)
    torn = save_step(tmp_path, 20)
    (torn / "shard_0.bin").write_bytes((torn / "shard_0.bin").read_bytes()[:-1])
    found = discover(tmp_path)
    assert step_of(found) == 10
    assert reasons(found) == {"step_20": "shard_0.bin has 161 of 162 bytes"}


def test_latest_on_one_that_lacks_the_manifest_of_the_one_before_does_not_help_it(tmp_path: Path) -> None:
    for step in (10, 20):
        save_step(tmp_path, step)
    save_step(tmp_path, 30, manifest=False)
    found = discover(tmp_path)
    assert step_of(found) == 20
    assert reasons(found) == {"step_30": "it has no manifest.json, and step_20 before it has one"}
    save_step(tmp_path, 40, manifest=False)
    assert step_of(discover(tmp_path)) == 40, "its trainer gives none any more"


def test_changed_bytes_of_the_right_length_are_seen(tmp_path: Path) -> None:
    save_step(tmp_path, 10)
    changed = save_step(tmp_path, 20) / "shard_0.bin"
    changed.write_bytes(changed.read_bytes()[:-1] + b"X")
    assert reasons(discover(tmp_path))["step_20"] == "shard_0.bin is not what was written: its sha256 differs"


@pytest.mark.parametrize("manifest", ["", "{", "[]", '{"shards": []}', '{"shards": [{"file": "x"}]}'])
def test_a_broken_manifest_proves_nothing(tmp_path: Path, manifest: str) -> None:
    save_step(tmp_path, 10)
    (save_step(tmp_path, 20) / "manifest.json").write_text(manifest)
    assert step_of(discover(tmp_path)) == 10


@pytest.mark.parametrize("damage", ["empty shard", "no .metadata", "empty metadata.json", "no files"])
def test_megatron_what_the_tracker_names_may_still_be_torn(tmp_path: Path, damage: str) -> None:
    save_megatron(tmp_path, 500)
    torn = save_megatron(tmp_path, 1000)
    match damage:
        case "empty shard":
            (torn / "__1_0.distcp").write_text("")
        case "no .metadata":
            (torn / ".metadata").unlink()
        case "empty metadata.json":
            (torn / "metadata.json").write_text("")
        case _:
            for path in torn.iterdir():
                path.unlink()
    found = discover(tmp_path)
    assert step_of(found) == 500
    assert list(reasons(found)) == ["iter_0001000"]


def test_megatron_is_held_to_its_tracker(tmp_path: Path) -> None:
    save_megatron(tmp_path, 500)
    save_megatron(tmp_path, 1000, point=False)
    found = discover(tmp_path)
    assert step_of(found) == 500
    assert reasons(found) == {"iter_0001000": "newer than the step in latest_checkpointed_iteration.txt"}
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("release")
    assert step_of(discover(tmp_path)) is None


def test_megatron_old_layout_needs_weights_of_every_rank(tmp_path: Path) -> None:
    for iteration in (1, 2):
        for rank in ("mp_rank_00", "mp_rank_01"):
            (tmp_path / f"iter_{iteration:07d}" / rank).mkdir(parents=True)
            if (iteration, rank) != (2, "mp_rank_01"):
                (tmp_path / f"iter_{iteration:07d}" / rank / "model_optim_rng.pt").write_text("weights")
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("2")
    found = discover(tmp_path)
    assert step_of(found) == 1
    assert reasons(found) == {"iter_0000002": "mp_rank_01 holds no weights"}


@pytest.mark.capability("S004-32")
def test_no_checkpoint_is_no_error_but_an_unreadable_place_is(tmp_path: Path) -> None:
    assert discover(tmp_path) == discover(tmp_path / "missing") == Discovery(None)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        discover(tmp_path / "file")


def test_without_any_pointer_nothing_is_believed(tmp_path: Path) -> None:
    save_step(tmp_path, 10, manifest=False, point=False)
    save_megatron(tmp_path, 20, point=False)
    found = discover(tmp_path)
    assert step_of(found) is None
    assert set(reasons(found)) == {"step_10", "iter_0000020"}


def test_temporary_names_and_links_are_no_checkpoints(tmp_path: Path) -> None:
    save_step(tmp_path, 10)
    (tmp_path / ".step_20.saving").mkdir()
    (tmp_path / "step_30").symlink_to("step_10")
    (tmp_path / "step_x").mkdir()
    assert discover(tmp_path).passed_over == ()


@settings(max_examples=cases(60))
@given(st.integers(0, 161), st.sampled_from(["shard_0.bin", "manifest.json"]))
def test_cut_anywhere_it_is_torn(tmp_path_factory: pytest.TempPathFactory, cut: int, name: str) -> None:
    directory = tmp_path_factory.mktemp("cut")
    save_step(directory, 10)
    path = save_step(directory, 20) / name
    path.write_bytes(path.read_bytes()[: min(cut, path.stat().st_size - 1)])
    assert step_of(discover(directory)) == 10


@pytest.mark.parametrize("fault", ["torn@8", "sigkill@7"])
def test_it_agrees_with_what_the_drill_resumes_from(tmp_path: Path, fault: str) -> None:
    argv = [sys.executable, str(trainer.__file__), "--checkpoint-dir", str(tmp_path), "--ranks=2"]
    argv += ["--iterations=10", "--save-every=3", "--iteration-ms=1", "--collective-timeout-ms=1500"]

    def attempt() -> list[int]:
        subprocess.run([*argv, f"--fault={fault}:1"], check=False, capture_output=True, timeout=120)
        records = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()]
        return [record["first_step"] for record in records if record["event"] == "start"]

    assert attempt() == [1]
    found = discover(tmp_path)
    assert step_of(found) == 6
    assert list(reasons(found)) == (["step_8"] if "torn" in fault else [])
    assert attempt() == [1, 7]


@pytest.mark.parametrize("form", ["global_step{}", "checkpoint-{}"])
def test_the_folders_of_other_trainers_count_up_to_their_pointer(tmp_path: Path, form: str) -> None:
    for step in (10, 20, 30):
        folder = tmp_path / form.format(step)
        folder.mkdir()
        tensors_file(folder / "model.safetensors")
    assert step_of(discover(tmp_path)) is None
    (tmp_path / "latest").write_text(form.format(20))
    assert step_of(discover(tmp_path)) == 20
