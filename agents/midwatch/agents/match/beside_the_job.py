"""Code that runs beside the job: Python prints its exception, and the job goes on without it. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

_BESIDE = re.compile(
    rb"[/\\]ray[/\\](?:new_)?dashboard[/\\]|[/\\]wandb[/\\](?:sdk|proto|internal|filesync)[/\\]"
    rb"|[/\\](?:tensorboard|tensorboardX|comet_ml|neptune|visdom|math_verify)[/\\]"
    rb"|[/\\]multiprocessing[/\\](?:resource_tracker|util)\.py$|[/\\]tqdm[/\\]_monitor\.py$"
)
_SERVERS = re.compile(rb"[/\\](?:socketserver|SocketServer)\.py$")
_SERVES = (b"process_request_thread", b"_handle_request_noblock")
"""Python's servers print what a request raised, and wait for the next one."""
_QUEUES = re.compile(rb"[/\\]multiprocess(?:ing)?[/\\]queues\.py$")
_LEAVES = b"_exit_barrier"
_AGENTS = re.compile(rb"[/\\]elastic[/\\]agent[/\\]server[/\\]api\.py$")
_READER_GONE = re.compile(rb"(?:BrokenPipeError|ConnectionResetError)\b")
_MOST_LINKS = 8
_NEXT_OF_A_CHAIN = re.compile(
    rb"[ \t]*\n\s*(?:During handling of the above exception, another exception occurred"
    rb"|The above exception was the direct cause of the following exception):[ \t]*\n\s*"
    rb"Traceback \(most recent call last\):[ \t]*\n[ \t]+File \"([^\"\n]+)\", line \d+"
)
_ENDED_BY_IT = re.compile(rb"\s*wandb: ERROR Abnormal program exit")
_EXCEPTION = re.compile(rb"[^\n]*\n(?:[ \t][^\n]*\n)*[^\n]*")


@lru_cache(maxsize=512)
def is_beside(file: bytes) -> bool:
    """Whether the code of the file runs beside the job. Tracebacks name few files."""
    return _BESIDE.search(file) is not None


def ends_beside(text: bytes, end: int) -> bool:
    """Whether the exception that ends at `end` is one of a chain that such code caught.

    The traceback of the chain's last exception begins where the handler of all of them stands.
    """
    file = b""
    for _ in range(_MOST_LINKS):
        link = _NEXT_OF_A_CHAIN.match(text, end)
        exception = link and _EXCEPTION.match(text, link.end())
        if not link or not exception:
            break
        file, end = link[1], exception.end()
    return is_beside(file)


def ended_by_it(text: bytes, end: int) -> bool:
    """Whether a tracker says right behind its exception, which ends at `end`, that it ends the program."""
    return _ENDED_BY_IT.match(text, end) is not None


def is_only_told(file: bytes, function: bytes, words: bytes) -> bool:
    """Whether nobody waits for what failed in such a first frame, so Python or torchrun only prints it.

    So it is for a thread that feeds a queue whose reader is gone, and for agents that do not meet at the end.
    A request to one of Python's servers is the server's own matter.
    """
    if function in _SERVES and _SERVERS.search(file) is not None:
        return True
    if function == _LEAVES and _AGENTS.search(file) is not None:
        return True
    feeds = function == b"_feed" and _QUEUES.search(file) is not None
    return feeds and _READER_GONE.match(words) is not None
