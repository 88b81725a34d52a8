"""The key by which a configuration names its checkpoint, for the trainers whose keys are known. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from midwatch.agents.rescue.yaml_patch import Wanted, keys, quoted
from midwatch.agents.schedulers.resume import ResumePoint


@dataclass(frozen=True, slots=True)
class ResumeKey:
    """`holds`: whether its value is the checkpoint or the directory. `beside`: what must be set too."""

    key: str
    trainers: str
    holds: str = "checkpoint"
    beside: tuple[tuple[str, str], ...] = ()


KNOWN = (
    ResumeKey("trainer.resume_from_path", "verl", beside=(("trainer.resume_mode", "resume_path"),)),
    ResumeKey("resume_from_checkpoint", "Hugging Face's Trainer, Axolotl"),
    ResumeKey("resume_from", "many loops"),
    ResumeKey("ckpt_path", "Lightning"),
    ResumeKey("load_path", "Composer, LLM Foundry"),
    ResumeKey("load_from", "MMEngine", beside=(("resume", "true"),)),
    ResumeKey("load", "Megatron-LM", holds="directory"),
    ResumeKey("resume", "timm"),
)
"""The first one that a configuration has counts. A key that holds true or false is another trainer's."""


def resume_values(data: dict[str, Any], point: ResumePoint, given: str | None) -> tuple[Wanted, ...]:
    """What to set so that the training loads this checkpoint; empty if no key is known.

    `given`: the key that a person named, which is added if it is absent. "" sets none.
    """
    if given is not None:
        return (Wanted(given, quoted(point.path), add=True),) if given else ()
    present = dict(keys(data))
    for known in KNOWN:
        if known.key not in present or not isinstance(present[known.key], str | None):
            continue
        value = point.path if known.holds == "checkpoint" else point.directory
        beside = (Wanted(key, wanted, add=True) for key, wanted in known.beside)
        return (Wanted(known.key, quoted(value)), *beside)
    return ()
