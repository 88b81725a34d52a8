"""Checkpoints in the layouts of known trainers, small and without torch. Complete until a test cuts them."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path


def torch_file(path: Path, **content: object) -> Path:
    """A file with the layout of `torch.save`: an archive with a pickle of protocol 2 and a tensor's bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(content, protocol=2))
        archive.writestr("archive/data/0", bytes(256))
        archive.writestr("archive/version", "3\n")
    return path


def lightning_file(path: Path, step: int, epoch: int = 0) -> Path:
    """What Lightning's ModelCheckpoint saves: epoch and global_step stand before the weights."""
    return torch_file(path, epoch=epoch, global_step=step, state_dict={"layer.weight": 1}, loops={})


def tensors_file(path: Path) -> Path:
    """A safetensors file with one tensor of 16 bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = json.dumps({"layer.weight": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    path.write_bytes(len(table).to_bytes(8, "little") + table + bytes(16))
    return path


def hugging_face_folder(folder: Path, step: int) -> Path:
    """What the Trainer of Hugging Face saves: model, optimizer, and its own state after them."""
    tensors_file(folder / "model.safetensors")
    torch_file(folder / "optimizer.pt")
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step, "log_history": []}))
    return folder


def torchtune_folder(folder: Path, number_inside: int = 0) -> Path:
    """What torchtune saves: sharded weights, and the recipe's state last."""
    tensors_file(folder / "model-00001-of-00002.safetensors")
    tensors_file(folder / "model-00002-of-00002.safetensors")
    torch_file(folder / "recipe_state.pt", epochs_run=number_inside + 1)
    return folder


def nemo_folder(folder: Path) -> Path:
    """What NeMo 2 saves: Megatron's distributed weights, and the context beside them."""
    (folder / "context").mkdir(parents=True)
    (folder / "context" / "model.yaml").write_text("model: toy")
    weights = folder / "weights"
    torch_file(weights / "common.pt")
    for name in ("__0_0.distcp", "__1_0.distcp", ".metadata", "metadata.json"):
        (weights / name).write_text("content")
    return folder


def nemo_ranks(directory: Path, name: str, folders: Iterable[str], step: int = 0) -> Path:
    """What NeMo saves with model parallelism: a file of each rank, in that rank's folder."""
    for folder in folders:
        lightning_file(directory / folder / name, step)
    return directory / name


def nemo_zarr_folder(folder: Path) -> Path:
    """What NeMo saves in zarr: a folder of each tensor, and no `.metadata`."""
    torch_file(folder / "common.pt")
    tensor = folder / "model.decoder.layers.mlp.linear_fc1.weight"
    tensor.mkdir()
    (tensor / ".zarray").write_text("{}")
    (tensor / "0.0").write_text("content")
    (folder / "metadata.json").write_text('{"sharded_backend": "zarr", "sharded_backend_version": 1}')
    return folder


def nemo_hugging_face_folder(folder: Path, weights: str = "hf_weights") -> Path:
    """What NeMo 2 saves of a model of Hugging Face: its weights, and the trainer's state after them."""
    tensors_file(folder / weights / "model.safetensors")
    torch_file(folder / "trainer.pt", global_step=1)
    return folder


def cut(path: Path) -> Path:
    """The second half of a file was never written."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def ray_run(folder: Path, metrics: Mapping[str, Mapping[str, object]]) -> list[Path]:
    """What Ray Train V2 keeps of a run: a folder each checkpoint, and the snapshot that names all of them."""
    folders = [folder / name for name in metrics]
    for each in folders:
        each.mkdir(parents=True)
        (each / "state.json").write_text("{}")
    results = [
        {"version": 0, "checkpoint_dir_name": name, "metrics": dict(values)}
        for name, values in metrics.items()
    ]
    snapshot = {
        "ray_version": "2.60.0",
        "checkpoint_results": results,
        "checkpoint_report_indices": list(range(len(results))),
        "latest_checkpoint_result": results[-1],
        "current_report_index": len(results),
    }
    (folder / ".validate_storage_marker").touch()
    (folder / "checkpoint_manager_snapshot.json").write_text(json.dumps(snapshot))
    return folders


def ray_trial(folder: Path, *, steps: Iterable[int], noted: int) -> None:
    """What Ray Train V1 keeps of a trial. The driver has noted only the first `noted` checkpoints."""
    folder.mkdir()
    (folder.parent / ".validate_storage_marker").touch()
    lines = []
    for number, step in enumerate(steps):
        name = f"checkpoint_{number:06d}"
        (folder / name).mkdir(parents=True)
        (folder / name / "state.json").write_text("{}")
        lines.append(json.dumps({"step": step, "checkpoint_dir_name": name, "done": False}) + "\n")
    (folder / "result.json").write_text("".join(lines[:noted]))
