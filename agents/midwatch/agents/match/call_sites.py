"""What the frames of a traceback add to its last line: whose code gave up, and what it was doing. Pure.

A name such as RuntimeError or KeyboardInterrupt says little; that it came out of a library that reads
checkpoints, out of an object store's client, or out of a wait for somebody else says what kind of failure
it is. Frames are (file, function), the innermost first, as `midwatch.agents.match.tracebacks` gives them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from midwatch.streams.records import Hit

Frames = Sequence[tuple[str, str]]

_NEAR = 3  # frames that belong to what was being done, not to who asked for it
_OBJECT_STORES = re.compile(
    r"[/\\](?:aiobotocore|botocore|boto3|s3transfer|s3fs|fsspec|gcsfs|adlfs|smart_open|azure|webdataset"
    r"|google[/\\](?:cloud|api_core|resumable_media))[/\\]"
)
_SETTINGS = re.compile(
    r"[/\\](?:argparse|optparse|configparser|(?:absl[/\\]flags|hydra|omegaconf|yaml|jsonargparse|configargparse)"
    r"[/\\]\w+)\.py$"
)
_KEEPS_STATE = re.compile(
    r"checkpoint|ckpt|[/\\]torch[/\\]serialization\.py$|hdf5_format|saving[/\\]", re.IGNORECASE
)
_HANDLES_STATE = re.compile(
    r"(?:load|restore|resume|read|save|write|dump)\w*(?:checkpoint|ckpt|state|weights)|load_from|restore"
    r"|(?:checkpoint|ckpt|weights|state_dict)\w*(?:load|restore|resume|save)"
)
_MOVES_STATE = re.compile(r"load|restore|resume|read|save|write|dump|serialize")
_WAITS = re.compile(
    r"^(?:wait\w*|acquire|join|poll|_?poll|select|get|recv\w*|_recv\w*|read|readinto|barrier|synchronize|result"
    r"|communicate|__enter__|_wait\w*|_try_wait|_try_get_data|get_objects|all_\w+|broadcast\w*|exchange)$"
)
_WAITING_ROOMS = re.compile(
    r"[/\\](?:threading|queue|selectors|subprocess|socket|ssl|multiprocessing[/\\]\w+|concurrent[/\\]futures[/\\]\w+"
    r"|asyncio[/\\]\w+|torch[/\\](?:distributed|cuda)[/\\]\w+|torch[/\\]utils[/\\]data[/\\]\w+|ray[/\\]worker"
    r"|ray[/\\]_private[/\\]worker)\.py$"
)
_CHILD = re.compile(r"[/\\]multiprocessing[/\\](?:spawn|connection|queues|managers|synchronize)\.py$")
_CUT_OFF = re.compile(
    r"\b(?:UnpicklingError|EOFError|BrokenPipeError|Connection(?:Reset|Refused|Aborted)Error)\b"
)
_ANY_EXCEPTION = "exception"


def placed(hit: Hit, frames: Frames) -> Hit:
    """The hit with what its traceback's frames make of it; a rule that knows its line keeps its word."""
    if not frames:
        return hit
    if hit.error_type == "user_interrupt" and _waited(frames):
        return replace(hit, error_type="hang", mode="stall")
    if hit.error_type == "oom" and "CUDA error" in hit.line.text and frames[0][1] == "barrier":
        # A barrier allocates nothing of the job's own: the card is broken, or still held by another job.
        return replace(hit, error_type="hardware", transient=True)
    if _CHILD.search(frames[0][0]) and _CUT_OFF.search(hit.line.text):
        # The other end of the pipe was gone: a child tells so of its parent, a parent of its child.
        return replace(hit, role="consequence", error_type=_ANY_EXCEPTION, fallback=True)
    return replace(hit, **_better(hit, frames)) if hit.fallback else hit


def _better(hit: Hit, frames: Frames) -> dict[str, Any]:
    """What a rule that knows no more than that something failed learns from the frames."""
    if hit.error_type == "communication" and _in(_OBJECT_STORES, frames):
        return {"error_type": "storage", "transient": True}
    if hit.error_type == _ANY_EXCEPTION:
        return {"error_type": _kind(frames)}
    return {}


def _kind(frames: Frames) -> str:
    if _SETTINGS.search(frames[0][0]):
        return "config"
    for file, function in frames[:_NEAR]:
        if _HANDLES_STATE.search(function) or (_KEEPS_STATE.search(file) and _MOVES_STATE.search(function)):
            return "checkpoint"
    return _ANY_EXCEPTION


def _waited(frames: Frames) -> bool:
    """Whether the process stood in a wait for others: a lock, a queue, a child, a collective."""
    file, function = frames[0]
    return _WAITING_ROOMS.search(file) is not None and _WAITS.match(function) is not None


def _in(files: re.Pattern[str], frames: Frames) -> bool:
    return any(files.search(file) for file, _ in frames[:_NEAR])
