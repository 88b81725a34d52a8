"""Which checkpoint a name belongs to, by the habits of the known trainers. Pure.

- `step_N`: torchtune and many loops. `epoch_N`: torchtune.
- `global_stepN`: DeepSpeed. `checkpoint-N`: the Trainer of Hugging Face.
- `iter_000000N`: Megatron.
- `epoch=E-step=N.ckpt` and `last.ckpt`: Lightning, as a file, or as a folder for sharded weights.
- `step_N.pt`, `iter_N.pth`, `checkpoint_N.pt`, `epoch_N.pth`: one file, of MMEngine and of many loops.
- `MODEL--…step=N…` and the same with `-last`: NeMo, with `.ckpt` as a file, else as a folder. With model
  parallelism the file lies once in the folder of each rank.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Form = Literal["step", "megatron", "torchtune", "lightning"]
Unit = Literal["step", "epoch"]

_FOLDER = re.compile(r"(?:step_|global_step|checkpoint-)(?P<number>\d+)")
_MEGATRON = re.compile(r"iter_(?P<number>\d{7,})")
_TORCHTUNE = re.compile(r"epoch_(?P<number>\d+)")
_STEP = re.compile(r"(?:^|-)step=(?P<number>\d+)(?=[-.]|$)")
_EPOCH = re.compile(r"(?:^|-)epoch=(?P<number>\d+)(?=[-.]|$)")
_ONE_FILE = re.compile(
    r"(?:(?:ckpt|checkpoint)[_-]?)?(?:(?P<word>step|iter|epoch)[_=-]?)?(?P<number>\d+)\.(?:ckpt|pt|pth|pth\.tar)"
)
_FILE = ".ckpt"
_COPY = "-EMA"  # NeMo's second copy of the weights; a start loads it together with the first


@dataclass(frozen=True, slots=True)
class Named:
    """What a name says. `number` is None where only the content knows it, as in `last.ckpt`."""

    form: Form
    number: int | None
    unit: Unit = "step"


def folder_name(name: str) -> Named | None:
    """What the name of a folder says; None if it is no checkpoint's."""
    for form, pattern in (("step", _FOLDER), ("megatron", _MEGATRON)):
        if match := pattern.fullmatch(name):
            return Named("megatron" if form == "megatron" else "step", int(match["number"]))
    if match := _TORCHTUNE.fullmatch(name):
        return Named("torchtune", int(match["number"]), "epoch")
    match = None if name.removesuffix(_FILE).endswith(_COPY) else _STEP.search(name)
    return Named("lightning", int(match["number"])) if match else None


def file_name(name: str) -> Named | None:
    """What the name of a file says; None if it is no checkpoint's. The content may know the step."""
    if (match := _ONE_FILE.fullmatch(name)) and not name[0].isdigit():
        return Named("lightning", int(match["number"]), "epoch" if match["word"] == "epoch" else "step")
    if not name.endswith(_FILE) or name.startswith(".") or name.removesuffix(_FILE).endswith(_COPY):
        return None
    if match := _STEP.search(name):
        return Named("lightning", int(match["number"]))
    match = _EPOCH.search(name)
    return Named("lightning", int(match["number"]) if match else None, "epoch")
