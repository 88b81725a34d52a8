"""Checkpoints of Lightning, NeMo and torchtune are found, in their own unit; a torn one is passed over."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from checkpoint_shapes import (
    cut,
    hugging_face_folder,
    lightning_file,
    nemo_folder,
    nemo_hugging_face_folder,
    nemo_ranks,
    nemo_zarr_folder,
    tensors_file,
    torch_file,
    torchtune_folder,
)
from midwatch.agents.schedulers.checkpoints import Discovery, discover


def found(directory: Path) -> tuple[str, int, str] | None:
    latest = discover(directory).latest
    return (latest.path.name, latest.step, latest.unit) if latest else None


def reasons(discovery: Discovery) -> dict[str, str]:
    return {passed.path.name: passed.reason for passed in discovery.passed_over}


def test_lightning_the_newest_whole_file_counts_by_its_step(tmp_path: Path) -> None:
    lightning_file(tmp_path / "epoch=1-step=2000.ckpt", 2000, 1)
    lightning_file(tmp_path / "epoch=3-step=4000.ckpt", 4000, 3)
    cut(lightning_file(tmp_path / "epoch=5-step=6000-v1.ckpt", 6000, 5))
    assert found(tmp_path) == ("epoch=3-step=4000.ckpt", 4000, "step")
    assert reasons(discover(tmp_path)) == {"epoch=5-step=6000-v1.ckpt": "it was cut short"}


def test_lightning_last_tells_its_step_only_inside(tmp_path: Path) -> None:
    lightning_file(tmp_path / "epoch=3-step=4000.ckpt", 4000, 3)
    last = lightning_file(tmp_path / "last.ckpt", 4500, 3)
    assert found(tmp_path) == ("last.ckpt", 4500, "step")
    cut(last)
    assert found(tmp_path) == ("epoch=3-step=4000.ckpt", 4000, "step")
    last.unlink()
    last.symlink_to("epoch=3-step=4000.ckpt")
    assert found(tmp_path) == ("epoch=3-step=4000.ckpt", 4000, "step")


def test_lightning_a_name_with_an_epoch_counts_in_steps_if_the_file_knows_them(tmp_path: Path) -> None:
    lightning_file(tmp_path / "epoch=02-val_loss=0.32.ckpt", 900, 2)
    assert found(tmp_path) == ("epoch=02-val_loss=0.32.ckpt", 900, "step")


def test_a_file_that_knows_only_its_epoch_counts_in_epochs(tmp_path: Path) -> None:
    torch_file(tmp_path / "epoch=7.ckpt", model={})
    assert found(tmp_path) == ("epoch=7.ckpt", 7, "epoch")


@pytest.mark.parametrize(
    ("older", "newer", "torn", "expected"),
    [
        ("step_900.pt", "step_1000.pt", "step_1100.pt", ("step_1000.pt", 1000, "step")),
        ("iter_900.pth", "iter_1000.pth", "iter_1100.pth", ("iter_1000.pth", 1000, "step")),
        ("checkpoint_8.pt", "checkpoint_9.pt", "checkpoint_10.pt", ("checkpoint_9.pt", 9, "step")),
        (
            "ckpt-step-8.pth.tar",
            "ckpt-step-9.pth.tar",
            "ckpt-step-10.pth.tar",
            ("ckpt-step-9.pth.tar", 9, "step"),
        ),
        ("epoch_8.pth", "epoch_9.pth", "epoch_10.pth", ("epoch_9.pth", 9, "epoch")),
    ],
)
def test_of_single_files_with_a_number_the_newest_whole_one_counts(
    tmp_path: Path, older: str, newer: str, torn: str, expected: tuple[str, int, str]
) -> None:
    torch_file(tmp_path / older, model={})
    torch_file(tmp_path / newer, model={})
    cut(torch_file(tmp_path / torn, model={}))
    for other in ("optimizer_2000.pt", "2000.pt", "model.pt", "step_2000.json"):
        torch_file(tmp_path / other, model={})
    assert found(tmp_path) == expected
    assert reasons(discover(tmp_path)) == {torn: "it was cut short"}


def test_a_file_that_torch_did_not_save_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "epoch=1-step=2.ckpt").write_bytes(b"weights")
    (tmp_path / "step=9.ckpt").write_bytes(b"")
    torch_file(tmp_path / "best.ckpt", model={})
    assert found(tmp_path) is None
    assert reasons(discover(tmp_path)) == {
        "best.ckpt": "nothing tells its step",
        "epoch=1-step=2.ckpt": "it is no whole file of torch.save",
        "step=9.ckpt": "it is empty",
    }


def test_a_pickle_is_read_and_never_run(tmp_path: Path) -> None:
    class Harmful:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (str(tmp_path / "it ran"),))

    torch_file(tmp_path / "last.ckpt", harm=Harmful(), global_step=30)
    assert found(tmp_path) == ("last.ckpt", 30, "step")
    assert not (tmp_path / "it ran").exists()


def test_lightning_sharded_weights_are_a_folder_that_ends_with_its_metadata(tmp_path: Path) -> None:
    folder = tmp_path / "epoch=0-step=50.ckpt"
    folder.mkdir()
    (folder / "__0_0.distcp").write_text("content")
    (folder / ".metadata").write_text("content")
    assert found(tmp_path) is None
    torch_file(folder / "meta.pt")
    assert found(tmp_path) == ("epoch=0-step=50.ckpt", 50, "step")


def test_lightning_with_deepspeed_ends_with_the_file_latest(tmp_path: Path) -> None:
    folder = tmp_path / "epoch=0-step=50.ckpt"
    torch_file(folder / "checkpoint" / "mp_rank_00_model_states.pt")
    assert found(tmp_path) is None
    (folder / "latest").write_text("checkpoint")
    assert found(tmp_path) == ("epoch=0-step=50.ckpt", 50, "step")


def test_deepspeed_keeps_the_weights_of_a_rank_in_files_of_that_name(tmp_path: Path) -> None:
    for step in (40, 60):
        torch_file(tmp_path / f"global_step{step}" / "mp_rank_00_model_states.pt")
        torch_file(tmp_path / f"global_step{step}" / "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt")
    (tmp_path / "latest").write_text("global_step60")
    assert found(tmp_path) == ("global_step60", 60, "step")
    cut(tmp_path / "global_step60" / "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt")
    assert found(tmp_path) == ("global_step40", 40, "step")


@pytest.mark.parametrize("damage", ["no state", "torn state", "state of another step", "torn optimizer"])
def test_hugging_face_ends_with_the_state_of_its_trainer(tmp_path: Path, damage: str) -> None:
    hugging_face_folder(tmp_path / "checkpoint-40", 40)
    newer = hugging_face_folder(tmp_path / "checkpoint-60", 60)
    assert found(tmp_path) == ("checkpoint-60", 60, "step")
    match damage:
        case "no state":
            (newer / "trainer_state.json").unlink()
        case "torn state":
            cut(newer / "trainer_state.json")
        case "state of another step":
            (newer / "trainer_state.json").write_text('{"global_step": 40}')
        case _:
            cut(newer / "optimizer.pt")
    assert found(tmp_path) == ("checkpoint-40", 40, "step")


def test_nemo_folders_and_files_count_until_a_marker_says_unfinished(tmp_path: Path) -> None:
    nemo_folder(tmp_path / "toy--val_loss=2.10-step=40-consumed_samples=320.0")
    last = nemo_folder(tmp_path / "toy--val_loss=2.05-step=60-consumed_samples=480.0-last")
    assert found(tmp_path) == (last.name, 60, "step")
    marker = tmp_path / f"{last.name}-unfinished"
    marker.touch()
    assert found(tmp_path) == ("toy--val_loss=2.10-step=40-consumed_samples=320.0", 40, "step")
    assert reasons(discover(tmp_path)) == {last.name: f"{marker.name} lies beside it"}

    lightning_file(tmp_path / "toy--val_loss=2.00-step=80-last.ckpt", 80)
    lightning_file(tmp_path / "toy--val_loss=2.00-step=90-EMA.ckpt", 90)
    assert found(tmp_path) == ("toy--val_loss=2.00-step=80-last.ckpt", 80, "step")
    (tmp_path / "toy--val_loss=2.00-step=80-last-unfinished").touch()
    assert found(tmp_path) == ("toy--val_loss=2.10-step=40-consumed_samples=320.0", 40, "step")


@pytest.mark.parametrize("damage", ["no .metadata", "empty metadata.json", "torn common.pt", "empty shard"])
def test_nemo_a_torn_folder_is_passed_over_without_any_marker(tmp_path: Path, damage: str) -> None:
    nemo_folder(tmp_path / "toy--step=40")
    weights = nemo_folder(tmp_path / "toy--step=60-last") / "weights"
    match damage:
        case "no .metadata":
            (weights / ".metadata").unlink()
        case "empty metadata.json":
            (weights / "metadata.json").write_text("")
        case "torn common.pt":
            cut(weights / "common.pt")
        case _:
            (weights / "__1_0.distcp").write_text("")
    assert found(tmp_path) == ("toy--step=40", 40, "step")


TENSOR = ("mp_rank_00", "mp_rank_01")
PIPELINE = tuple(f"tp_rank_0{t}_pp_rank_00{p}" for t in (0, 1) for p in (0, 1))
SHARDED = tuple(f"mp_rank_0{t}_fsdp_shard_0000{d}" for t in (0, 1) for d in (0, 1))
FSDP = ("fsdp_shard_00000", "fsdp_shard_00001")


@pytest.mark.parametrize("folders", [TENSOR, PIPELINE, SHARDED, FSDP])
def test_nemo_a_file_of_each_rank_is_one_checkpoint_by_the_name_that_nemo_loads(
    tmp_path: Path, folders: tuple[str, ...]
) -> None:
    older = nemo_ranks(tmp_path, "toy--val_loss=2.10-step=40-last.ckpt", folders)
    newer = nemo_ranks(tmp_path, "toy--val_loss=2.05-step=60-last.ckpt", folders)
    nemo_ranks(tmp_path, "toy--val_loss=2.05-step=70-last-EMA.ckpt", folders)
    latest = discover(tmp_path).latest
    assert latest is not None
    assert (latest.path, latest.step) == (newer, 60), "in no rank's folder: NeMo finds them itself"
    assert latest.written_at == max((tmp_path / f / newer.name).stat().st_mtime for f in folders)

    (tmp_path / folders[-1] / newer.name).unlink()
    assert found(tmp_path) == (older.name, 40, "step")
    assert reasons(discover(tmp_path)) == {newer.name: f"{folders[-1]} lacks it"}
    cut(lightning_file(tmp_path / folders[-1] / newer.name, 60))
    assert reasons(discover(tmp_path)) == {newer.name: f"its file in {folders[-1]} was cut short"}
    lightning_file(tmp_path / folders[-1] / newer.name, 60)
    (tmp_path / "toy--val_loss=2.05-step=60-last-unfinished").touch()
    assert found(tmp_path) == (older.name, 40, "step"), "NeMo's marker lies beside the ranks' folders"
    assert "unfinished lies beside it" in reasons(discover(tmp_path))[newer.name]


def test_nemo_a_lost_folder_between_two_ranks_is_missed(tmp_path: Path) -> None:
    nemo_ranks(tmp_path, "toy--step=40.ckpt", ("mp_rank_00", "mp_rank_02"))
    nemo_ranks(tmp_path, "toy--step=60.ckpt", ("mp_rank_00", "mp_rank_02"))
    assert found(tmp_path) is None
    assert reasons(discover(tmp_path))["toy--step=60.ckpt"] == "mp_rank_01 lacks it"


def test_nemo_a_file_of_each_rank_tells_its_step_inside_where_its_name_does_not(tmp_path: Path) -> None:
    nemo_ranks(tmp_path, "last.ckpt", TENSOR, 45)
    assert found(tmp_path) == ("last.ckpt", 45, "step")


def test_nemo_one_file_and_files_of_ranks_lie_in_one_directory(tmp_path: Path) -> None:
    lightning_file(tmp_path / "toy--step=40.ckpt", 40)
    nemo_ranks(tmp_path, "toy--step=60.ckpt", TENSOR)
    assert found(tmp_path) == ("toy--step=60.ckpt", 60, "step")


def test_nemo_zarr_ends_with_metadata_json_alone(tmp_path: Path) -> None:
    nemo_zarr_folder(tmp_path / "toy--step=40")
    newer = nemo_zarr_folder(tmp_path / "toy--step=60-last")
    assert found(tmp_path) == (newer.name, 60, "step")
    (newer / "metadata.json").unlink()
    assert found(tmp_path) == ("toy--step=40", 40, "step")
    (newer / "metadata.json").write_text('{"sharded_backend": "torch_dist"}')
    assert found(tmp_path) == ("toy--step=40", 40, "step")


@pytest.mark.parametrize("weights", ["hf_weights", "hf_adapter"])
def test_nemo_with_a_model_of_hugging_face_ends_with_its_trainers_state(tmp_path: Path, weights: str) -> None:
    nemo_hugging_face_folder(tmp_path / "default--loss=0.02-epoch=1-step=40", weights)
    newer = nemo_hugging_face_folder(tmp_path / "default--loss=0.01-epoch=2-step=60", weights)
    assert found(tmp_path) == (newer.name, 60, "step")
    cut(newer / "trainer.pt")
    assert found(tmp_path) == ("default--loss=0.02-epoch=1-step=40", 40, "step")
    (newer / "trainer.pt").unlink()
    assert reasons(discover(tmp_path)) == {newer.name: "trainer.pt is missing or was cut short"}


def test_torchtune_epochs_keep_their_unit_and_end_with_the_recipes_state(tmp_path: Path) -> None:
    for epoch in (0, 1, 2):
        torchtune_folder(tmp_path / f"epoch_{epoch}", epoch)
    assert found(tmp_path) == ("epoch_2", 2, "epoch")
    cut(tmp_path / "epoch_2" / "recipe_state.pt")
    assert found(tmp_path) == ("epoch_1", 1, "epoch")
    (tmp_path / "epoch_1" / "recipe_state.pt").unlink()
    assert found(tmp_path) == ("epoch_0", 0, "epoch")
    cut(tmp_path / "epoch_0" / "model-00002-of-00002.safetensors")
    assert found(tmp_path) is None
    assert reasons(discover(tmp_path))["epoch_2"] == "recipe_state.pt was cut short"


def test_torchtune_steps_need_no_pointer(tmp_path: Path) -> None:
    torchtune_folder(tmp_path / "step_100")
    cut(torchtune_folder(tmp_path / "step_200") / "recipe_state.pt")
    assert found(tmp_path) == ("step_100", 100, "step")


def test_torchtune_asynchronous_folders_end_with_their_metadata(tmp_path: Path) -> None:
    for step in (100, 200):
        (tmp_path / f"step_{step}").mkdir()
        (tmp_path / f"step_{step}" / "__0_0.distcp").write_text("content")
    (tmp_path / "step_100" / ".metadata").write_text("content")
    (tmp_path / "step_200" / ".metadata").write_text("")
    assert found(tmp_path) == ("step_100", 100, "step")


def test_of_steps_and_epochs_the_later_written_one_counts(tmp_path: Path) -> None:
    import os

    torchtune_folder(tmp_path / "epoch_3")
    torchtune_folder(tmp_path / "step_100")
    os.utime(tmp_path / "epoch_3", (100, 100))
    assert found(tmp_path) == ("step_100", 100, "step")
    os.utime(tmp_path / "step_100", (50, 50))
    assert found(tmp_path) == ("epoch_3", 3, "epoch")


@pytest.mark.parametrize("length", [0, 4, 20, -1])
def test_weights_that_were_cut_short_are_torn_whatever_the_pointer_names(tmp_path: Path, length: int) -> None:
    for step in (10, 20):
        tensors_file(tmp_path / f"checkpoint-{step}" / "model.safetensors")
    shutil.copytree(tmp_path / "checkpoint-10", tmp_path / "checkpoint-30")
    (tmp_path / "latest").write_text("checkpoint-30")
    torn = tmp_path / "checkpoint-30" / "model.safetensors"
    torn.write_bytes(torn.read_bytes()[:length])
    assert found(tmp_path) == ("checkpoint-20", 20, "step")
