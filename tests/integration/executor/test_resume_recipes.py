"""Every recipe of docs/resume.md, through the real local scheduler: the restart loads what midwatch names.

The trainers are stand-ins that take the frameworks' own arguments: no framework runs here.
"""

from __future__ import annotations

import json
import re
import secrets
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from checkpoint_shapes import (
    cut,
    hugging_face_folder,
    lightning_file,
    nemo_folder,
    tensors_file,
    torch_file,
    torchtune_folder,
)
from executor_world import World
from midwatch.agents.launch.job_spec import Started
from midwatch.agents.schedulers.resume import template
from processes import wait_for

pytestmark = pytest.mark.integration

STAND_IN = Path(__file__).with_name("stand_in_trainer.py")
PAGE = Path(__file__).parents[3] / "docs" / "resume.md"


def megatron(directory: Path) -> Path:
    for iteration in ("0000040", "0000060"):
        torch_file(directory / f"iter_{iteration}" / "mp_rank_00" / "model_optim_rng.pt")
    (directory / "latest_checkpointed_iteration.txt").write_text("60")
    cut(directory / "iter_0000060" / "mp_rank_00" / "model_optim_rng.pt")
    return directory / "iter_0000040"


def deepspeed(directory: Path) -> Path:
    for step in (40, 60):
        torch_file(directory / f"global_step{step}" / "mp_rank_00_model_states.pt")
    (directory / "latest").write_text("global_step60")
    cut(directory / "global_step60" / "mp_rank_00_model_states.pt")
    return directory / "global_step40"


def hugging_face(directory: Path) -> Path:
    tensors_file(directory / "checkpoint-60" / "model.safetensors")  # killed before its state was written
    return hugging_face_folder(directory / "checkpoint-40", 40)


def lightning(directory: Path) -> Path:
    cut(lightning_file(directory / "epoch=5-step=60.ckpt", 60))
    return lightning_file(directory / "epoch=3-step=40.ckpt", 40)


def nemo(directory: Path) -> Path:
    torn = nemo_folder(directory / "toy--val_loss=2.05-step=60-consumed_samples=480.0-last")
    (directory / f"{torn.name}-unfinished").touch()
    return nemo_folder(directory / "toy--val_loss=2.10-step=40-consumed_samples=320.0")


def torchtune(directory: Path) -> Path:
    cut(torchtune_folder(directory / "epoch_4") / "recipe_state.pt")
    return torchtune_folder(directory / "epoch_3")


LAYOUTS: dict[str, Callable[[Path], Path]] = {
    "Megatron-LM": megatron,
    "DeepSpeed": deepspeed,
    "Hugging Face Trainer": hugging_face,
    "Lightning": lightning,
    "NeMo": nemo,
    "torchtune": torchtune,
}


def recipe(framework: str) -> tuple[tuple[str, ...], str]:
    """The words of `--resume-arg` and the Python that the page gives for this framework."""
    text = PAGE.read_text().partition("## Recipes")[2].partition("\n## ")[0]
    section = re.split(r"^### (.+)$", text, flags=re.MULTILINE)
    body = dict(zip(section[1::2], section[2::2], strict=True))[framework]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", body, flags=re.MULTILINE | re.DOTALL)
    lines = [shlex.split(code.replace("\\\n", " ")) for language, code in blocks if language == "sh"]
    texts = [
        word.removeprefix("--resume-arg=")
        for line in lines
        for word in line
        if word.startswith("--resume-arg=")
    ]
    return template(texts), "".join(code for language, code in blocks if language == "python")


RUN_FOR_REAL = ("Ray Train",)
"""Their recipes need no stand-in: `integration/ray/test_chain.py` runs the framework itself."""


def test_the_page_has_a_recipe_for_each_stand_in_and_no_other() -> None:
    text = PAGE.read_text().partition("## Recipes")[2].partition("\n## ")[0]
    assert re.findall(r"^### (.+)$", text, flags=re.MULTILINE) == [*LAYOUTS, *RUN_FOR_REAL]
    assert all(any(recipe(framework)) for framework in LAYOUTS)


@pytest.mark.capability("S002-05")
def test_every_recipe_loads_the_complete_checkpoint_and_not_the_torn_newest(world: World) -> None:
    world.executor()
    begun: dict[str, tuple[Started, Path, Path]] = {}
    for framework, layout in LAYOUTS.items():
        place = world.directory / framework.replace(" ", "_")
        checkpoints, shown, code = place / "its checkpoints", place / "shown.jsonl", place / "recipe.py"
        checkpoints.mkdir(parents=True)
        words, python = recipe(framework)
        code.write_text(python)
        command = [sys.executable, str(STAND_IN), framework, str(shown), str(code)]
        started = world.run(
            *command,
            job=f"j{secrets.token_hex(4)}",
            checkpoint_directory=str(checkpoints),
            resume_arguments=words,
        )
        begun[framework] = (started, shown, layout(checkpoints))
    orders = {}
    for framework, (started, _, _) in begun.items():
        world.await_end(started)
        orders[framework] = world.order(started)
        world.send(orders[framework])
    for framework, (_, shown, expected) in begun.items():
        done = world.await_outcome(orders[framework], "done", "failed")
        wait_for(lambda file=shown: len(file.read_text().splitlines()) > 1, framework)  # type: ignore[misc] # bound at once
        first, second = (json.loads(line) for line in shown.read_text().splitlines())
        assert first["loads"] == "", framework
        assert second["loads"] == str(expected), framework
        assert done.checkpoint == str(expected), framework
        assert done.checkpoint_unit == ("epoch" if framework == "torchtune" else "step")
