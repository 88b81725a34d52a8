"""Checkpoints of the drill: shards, the manifest, the final name, `latest`, then Megatron's tracker.

A step is complete when its manifest exists and every shard has the sha256 of the manifest.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

TRACKER = "latest_checkpointed_iteration.txt"


def durable(path: Path, content: bytes) -> dict[str, Any]:
    """Writes and fsyncs one file. Returns its entry for the manifest."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return {"file": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def complete(step: Path) -> bool:
    try:
        shards = json.loads((step / "manifest.json").read_text())["shards"]
        contents = [(step / shard["file"]).read_bytes() for shard in shards]
    except (OSError, ValueError, KeyError):
        return False
    digests = [hashlib.sha256(content).hexdigest() for content in contents]
    return digests == [shard["sha256"] for shard in shards]


def load(directory: Path, features: int) -> tuple[int, list[float]]:
    """The step and weights of the latest complete checkpoint, or (0, zeros) without one."""
    numbers = [int(name) for step in directory.glob("step_*") if (name := step.name[5:]).isdigit()]
    weights = [0.0] * features
    for number in sorted(numbers, reverse=True):
        step = directory / f"step_{number}"
        if complete(step):
            for shard in json.loads((step / "manifest.json").read_text())["shards"]:
                for index, value in json.loads((step / shard["file"]).read_text()).items():
                    weights[int(index)] = value
            return number, weights
    return 0, weights


def begin(folder: Path) -> None:
    """Makes an empty folder, and removes what a killed attempt left there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


def publish(fresh: Path, final: Path, step: int, shards: list[dict[str, Any]]) -> None:
    """Makes a folder of written shards the latest checkpoint. A kill meanwhile keeps the previous one."""
    durable(fresh / "manifest.json", json.dumps({"step": step, "shards": shards}).encode())
    shutil.rmtree(final, ignore_errors=True)
    fresh.rename(final)
    handle = os.open(final.parent, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
    link = final.with_name(f".latest.{os.getpid()}")
    link.symlink_to(final.name)
    link.replace(final.with_name("latest"))
    tracker = final.with_name(f".{TRACKER}.{os.getpid()}")
    durable(tracker, str(step).encode())
    tracker.replace(final.with_name(TRACKER))
