"""Stand-ins for frameworks of docs/resume.md: each takes its framework's arguments, and trains nothing.

`stand_in_trainer.py FRAMEWORK SHOWN RECIPE ARGUMENTS…`. RECIPE is the Python of the recipe, or an empty file.
A line of SHOWN says which checkpoint this start would load, by the rules of the framework.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import sys
from pathlib import Path


def megatron(arguments: list[str], _recipe: Path) -> str:
    """`--load` takes a directory whose pointer names the iteration; `--ckpt-step` replaces that."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--load")
    parser.add_argument("--ckpt-step", type=int)
    line = parser.parse_args(arguments)
    if line.load is None:
        return ""
    pointer = Path(line.load, "latest_checkpointed_iteration.txt").read_text()
    return str(Path(line.load, f"iter_{line.ckpt_step or int(pointer):07d}"))


def deepspeed(_arguments: list[str], recipe: Path) -> str:
    """`load_checkpoint` takes a directory and a tag; without a tag it would follow `latest`."""

    class Engine:
        loaded = ""

        def load_checkpoint(self, load_dir: str, tag: str | None = None) -> None:
            self.loaded = str(Path(load_dir, tag or Path(load_dir, "latest").read_text()))

    engine = Engine()
    runpy.run_path(str(recipe), {"os": os, "engine": engine})
    return engine.loaded


def hugging_face(_arguments: list[str], recipe: Path) -> str:
    """`train` takes a path; None begins anew."""
    loaded: list[str] = []

    class Trainer:
        def train(self, resume_from_checkpoint: str | None = None) -> None:
            loaded.append(resume_from_checkpoint or "")

    runpy.run_path(str(recipe), {"os": os, "trainer": Trainer()})
    return loaded[0]


def lightning(_arguments: list[str], recipe: Path) -> str:
    """`fit` takes a path; None begins anew."""
    loaded: list[str] = []

    class Trainer:
        def fit(self, model: object, ckpt_path: str | None = None) -> None:  # noqa: ARG002 # as there
            loaded.append(ckpt_path or "")

    runpy.run_path(str(recipe), {"os": os, "model": None, "trainer": Trainer()})
    return loaded[0]


def nemo(arguments: list[str], _recipe: Path) -> str:
    """Hydra's overrides: a value that holds `=` must stand in quotation marks."""
    overrides = dict(argument.partition("=")[::2] for argument in arguments)
    path = overrides.get("exp_manager.resume_from_checkpoint", "")
    quoted = re.fullmatch(r'"([^"\\]*)"', path)
    if "=" in path and not quoted:
        raise SystemExit("mismatched input '='")
    if path and overrides.get("exp_manager.resume_if_exists") != "false":
        return "the newest -last"
    return quoted[1] if quoted else path


def torchtune(arguments: list[str], _recipe: Path) -> str:
    """Overrides of the configuration: a directory with `epoch` or `step` in its name is the one to load."""
    overrides = dict(argument.partition("=")[::2] for argument in arguments)
    if overrides.get("resume_from_checkpoint") != "True":
        return ""
    folder = overrides["checkpointer.checkpoint_dir"]
    return folder if "epoch" in folder or "step" in folder else "the highest"


def main() -> int:
    framework, shown, recipe, *arguments = sys.argv[1:]
    loads = {"Megatron-LM": megatron, "DeepSpeed": deepspeed, "Hugging Face Trainer": hugging_face}
    loads |= {"Lightning": lightning, "NeMo": nemo, "torchtune": torchtune}
    loaded = loads[framework](arguments, Path(recipe))
    with Path(shown).open("a") as file:
        file.write(json.dumps({"loads": loaded, "arguments": arguments}) + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
