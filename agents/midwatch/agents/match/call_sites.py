"""Call sites: the frames of a traceback say whose code raised, and what it was doing. Pure.

A name such as RuntimeError or KeyboardInterrupt says little about the kind of failure. The code that raised
says more: a checkpoint library, an object store's client, or a wait for another process. Frames are (file,
function), the innermost first, as `midwatch.agents.match.tracebacks` gives them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from midwatch.streams.records import Hit

Frames = Sequence[tuple[str, str]]

_NEAR = 3  # innermost frames that show the operation; outer ones show its callers
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
_LOADS_DATA = re.compile(r"[/\\]datasets[/\\]load\.py:load\w*$")
_SCALES_LOSSES = re.compile(r"[/\\]apex[/\\](?:amp|fp16_utils)[/\\]\w+\.py$")
_DIVIDED_BY_NOTHING = "ZeroDivisionError"
_MOVES_STATE = re.compile(r"load|restore|resume|read|save|write|dump|serialize")
_WAITS = re.compile(
    r"^(?:wait\w*|acquire|join|poll|_?poll|select|get|recv\w*|_recv\w*|read|readinto|barrier|synchronize|result"
    r"|communicate|__enter__|_wait\w*|_try_wait|_try_get_data|get_objects|all_\w+|broadcast\w*|exchange)$"
)
_FETCHES = "_try_get_data"  # of torch's DataLoader: it waits for the next batch of its workers
_WAITING_ROOMS = re.compile(
    r"[/\\](?:threading|queue|selectors|subprocess|socket|ssl|multiprocessing[/\\]\w+|concurrent[/\\]futures[/\\]\w+"
    r"|asyncio[/\\]\w+|torch[/\\](?:distributed|cuda)[/\\]\w+|torch[/\\]utils[/\\]data[/\\]\w+|ray[/\\]worker"
    r"|ray[/\\]_private[/\\]worker)\.py$"
)
_WORKS_FOR_IT = re.compile(
    r"[/\\](?:concurrent[/\\]futures[/\\]\w+|multiprocessing[/\\]pool|multiprocess[/\\]pool|joblib[/\\]parallel"
    r"|subprocess)\.py$"
)
_POOL = re.compile(r"[/\\]multiprocess(?:ing)?[/\\]pool\.py$")
_HTTP_CLIENT = re.compile(r"[/\\]http[/\\]client\.py$")
_FETCHES_FROM_THE_NET = re.compile(
    r"[/\\]urllib[/\\]request\.py$|[/\\]http[/\\]client\.py$"
    r"|[/\\](?:requests|urllib3|httpx|httpcore|aiohttp|huggingface_hub|gdown)[/\\]"
)
_READS_A_BODY = re.compile(
    r"^(?:read|read1|readinto|_safe_read|_safe_readinto|_read\w*_chunked|_get_chunk_left)$"
)
_AWAITS_ITS_HEAD = re.compile(r"^(?:_read_status|begin|getresponse)$")
_CHILD = re.compile(r"[/\\]multiprocessing[/\\](?:spawn|connection|queues|managers|synchronize)\.py$")
_CUT_OFF = re.compile(
    r"\b(?:UnpicklingError|EOFError|BrokenPipeError|Connection(?:Reset|Refused|Aborted)Error)\b"
    r"|\bOSError: handle is closed$"
)
_MEETS = re.compile(r"[/\\]multiprocessing[/\\]connection\.py$")
_GONE = re.compile(r"\bFileNotFoundError: \[Errno 2\] No such file or directory$")
_DROPPED = re.compile(
    r"RemoteDisconnected|Connection aborted|[Rr]eset by peer|IncompleteRead|ServerDisconnected"
    r"|HTTP Error 50[0234]|\b50[234] (?:Server Error|Bad Gateway|Service|Gateway)"
)
_HANDSHAKE = re.compile(r"handshake|wrap_socket")
_TABLES = re.compile(r"[/\\](?:pandas|sklearn|pyarrow|numpy)[/\\]")
_EXISTS = re.compile(r"\bFileExistsError\b")
_MAKES_FOLDERS = re.compile(r"^(?:makedirs|mkdir)$")
_OF_THIS_START = re.compile(r"version_\d+|\d{4}-\d\d-\d\d|\d{8}[-_T]|\d\d[-:_]\d\d[-:_]\d\d")
_MAKER = 2  # innermost frames in which a folder is made
_TO_NO_FILE = re.compile(r"\bOSError: \[Errno 5\] Input/output error\s*\Z")
_PRINTS = re.compile(
    r"[/\\](?:tqdm[/\\](?:std|utils)|click[/\\](?:utils|termui)|rich[/\\](?:console|file_proxy)"
    r"|logging[/\\](?:__init__|handlers)|colorama[/\\]ansitowin32|pydevd_io)\.py$"
)
"""Who prints. A terminal that is gone refuses it with the error of a broken disk (POSIX, write)."""
_LOST_TERMINAL = "The terminal was lost, and the program with it. Start it under the scheduler or tmux."
_TRACKS = re.compile(r"[/\\]wandb[/\\]sdk[/\\]wandb_run\.py$")
_TRACKED = (
    "The script had come to its last call: the tracker could not finish. Look whether all work is done."
)
_STARTS_CHILDREN = re.compile(r"[/\\]multiprocessing[/\\](?:spawn|process)\.py$")
_ANY_EXCEPTION = "exception"
_WAITS_IN_ANY_RUN = re.compile(
    r"[/\\]torch[/\\]multiprocessing[/\\]spawn\.py:(?:spawn|start_processes|join)$"  # _wrap is of a child
    r"|[/\\]multiprocess(?:ing)?[/\\](?:process\.py:join|popen_\w+\.py:(?:wait|poll))$"
    r"|[/\\]torch[/\\]distributed[/\\](?:launch|run|launcher[/\\]\w+|elastic[/\\]agent[/\\].{1,40})\.py:"
    r"|[/\\]deepspeed[/\\]launcher[/\\]\w+\.py:|[/\\]accelerate[/\\]commands[/\\]launch\.py:"
    r"|[/\\](?:wandb|comet_ml|neptune|swanlab|clearml|mlflow)[/\\]"  # a tracker that waits for its server
)


def reclassified(hit: Hit, frames: Frames) -> Hit:
    """The hit with the fields that its frames show: those that are sure in any hit, others in a fallback."""
    if not frames:
        return hit
    if hit.error_type == "user_interrupt":
        return _interrupted(hit, frames)
    shown = _sure(hit, frames)
    if not shown and hit.fallback:
        shown = _type_from(hit, frames)
    return replace(hit, **shown)


def _sure(hit: Hit, frames: Frames) -> dict[str, Any]:
    """The fields that the frames change in a hit of any rule."""
    if hit.error_type == "oom" and "CUDA error" in hit.line.text and frames[0][1] == "barrier":
        # A barrier allocates no memory of the job. So the card is broken, or another job still holds it.
        return {"error_type": "hardware", "transient": True}
    if _lost_its_other_end(hit.line.text, frames[0]):
        return {"role": "consequence", "error_type": _ANY_EXCEPTION, "fallback": True}
    if _TO_NO_FILE.search(hit.line.text) and _PRINTS.search(frames[0][0]):
        return {"error_type": "cancelled", "transient": True, "fallback": True, "remedy": _LOST_TERMINAL}
    if _EXISTS.search(hit.line.text) and _raced(hit, frames):
        return {"transient": True}
    if any(function == "finish" and _TRACKS.search(file) for file, function in frames):
        return {"transient": None, "remedy": _TRACKED}
    return {}


def _interrupted(hit: Hit, frames: Frames) -> Hit:
    """The hit of an interrupt: a hang if the process waited for another. A pool's worker is marked as one."""
    waited = _waited(frames) and not _waits_as_usual(frames)
    if any(_POOL.search(file) and function == "worker" for file, function in frames):
        hit = replace(hit, captures={**hit.captures, "worker_of_pool": "waits" if waited else "works"})
    return replace(hit, error_type="hang", mode="stall") if waited else hit


def _lost_its_other_end(text: str, innermost: tuple[str, str]) -> bool:
    """Whether the process at the other end of a pipe or a socket had gone: this one's parent or its child.

    Its socket of a file system goes with it, so who calls it finds no file. Such a file has no name here.
    """
    file, function = innermost
    if _CHILD.search(file) and _CUT_OFF.search(text.rstrip()):
        return True
    return (
        _MEETS.search(file) is not None
        and function == "SocketClient"
        and _GONE.search(text.rstrip()) is not None
    )


def _raced(hit: Hit, frames: Frames) -> bool:
    """Whether one of several processes found the folder of this very start, which another had just made.

    A folder of any other name may be left from an earlier start, and then each start finds it.
    """
    if _OF_THIS_START.search(hit.line.text) is None:
        return False
    several = hit.line.rank is not None or hit.line.claimed_rank is not None
    made = any(_MAKES_FOLDERS.match(function) for _, function in frames[:_MAKER])
    return made and (several or any(_STARTS_CHILDREN.search(file) for file, _ in frames))


def _type_from(hit: Hit, frames: Frames) -> dict[str, Any]:
    """The fields that the frames change in a hit of a fallback rule."""
    if hit.error_type == "communication" and _in(_OBJECT_STORES, frames):
        return {"error_type": "storage", "transient": True}
    if hit.error_type == "communication" and hit.transient is None:
        return _let_go(hit, frames)
    if hit.error_type == "numerical_instability" and _TABLES.search(frames[0][0]):
        return {"error_type": "data"}
    if (
        hit.error_type == _ANY_EXCEPTION
        and _DIVIDED_BY_NOTHING in hit.line.text
        and _in(_SCALES_LOSSES, frames)
    ):
        # Every gradient overflowed, until the scale of the loss was zero.
        return {"error_type": "numerical_instability"}
    if hit.error_type == _ANY_EXCEPTION:
        return {"error_type": _kind(frames)}
    return {}


def _let_go(hit: Hit, frames: Frames) -> dict[str, Any]:
    """The fields where a service had answered and let go, or had taken the request. Such a failure may pass.

    A handshake that fails each time is another matter. A server that an HTTP client asked is no rank of the
    job. So its reset is the cause, and no news of a peer's end.
    """
    if any(_HANDSHAKE.search(function) for _, function in frames):
        return {}
    if not (_DROPPED.search(hit.line.text) or _was_asked(frames)):
        return {}
    fetched = any(_FETCHES_FROM_THE_NET.search(file) for file, _ in frames)
    return {"transient": True, "role": "cause"} if fetched else {"transient": True}


def _was_asked(frames: Frames) -> bool:
    """Whether the process had sent an HTTP request and waited for the first line of its answer."""
    return any(
        _HTTP_CLIENT.search(file) and _AWAITS_ITS_HEAD.match(function) for file, function in frames[:_NEAR]
    )


def _kind(frames: Frames) -> str:
    if _SETTINGS.search(frames[0][0]):
        return "config"
    if _LOADS_DATA.search(":".join(frames[0])):
        return "data"
    for file, function in frames[:_NEAR]:
        if _HANDLES_STATE.search(function) or (_KEEPS_STATE.search(file) and _MOVES_STATE.search(function)):
            return "checkpoint"
    return _ANY_EXCEPTION


def _waited(frames: Frames) -> bool:
    """Whether the process waited for another: in a lock, a queue, a child or a collective.

    The body of an HTTP answer is a download: the server had answered, and no process waits for another. A
    parent always waits for its pool or its child while these work, so its wait shows nothing.
    """
    file, function = frames[0]
    if any(_WORKS_FOR_IT.search(each) for each, _ in frames[:_NEAR]):
        return False
    if any(_HTTP_CLIENT.search(each) and _READS_A_BODY.match(name) for each, name in frames):
        return False
    return _WAITING_ROOMS.search(file) is not None and _WAITS.match(function) is not None


def _waits_as_usual(frames: Frames) -> bool:
    """Whether a healthy run waits here too: a loop for its batch, a launcher, or a tracker for its server.

    Who stops a run by hand mostly meets one of these waits, before the first step as well.
    """
    return any(
        function == _FETCHES or _WAITS_IN_ANY_RUN.search(f"{file}:{function}") for file, function in frames
    )


def _in(files: re.Pattern[str], frames: Frames) -> bool:
    return any(files.search(file) for file, _ in frames[:_NEAR])
