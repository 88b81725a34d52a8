"""What a driver's printed lines tell: its step, its throughput, and the transport of NCCL. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_STEP = re.compile(
    r"\b(?:(?:train|current)_)?(?:global[_ ]?step|iteration|iter|step)\b[\"']?\s*[:=#]?\s*\[?\s*"
    r"(?P<step>\d[\d,]*)(?!\d|[\d,]*\.\d)",
    re.IGNORECASE,
)
_BAR = re.compile(r"\b(?P<step>\d+)/\d+ \[\d+:\d\d")
_UNIT = r"(?:tokens?|samples?|examples?|images?|steps?|it)"
_RATE_AFTER = re.compile(
    r"(?P<value>\d[\d,]*(?:\.\d+)?)\s*(?P<scale>[kKM]?)\s*"
    rf"(?P<unit>{_UNIT})\s*(?:/|per )\s*s(?:ec(?:ond)?)?\b",
    re.IGNORECASE,
)
_RATE_BEFORE = re.compile(
    rf"(?P<unit>{_UNIT})(?:/|_per_|[ _]per[ _])\s*s(?:ec(?:ond)?)?(?:/gpu)?[\"']?\s*[:=]\s*"
    r"(?P<value>\d[\d,]*(?:\.\d+)?)(?P<scale>[kKM]?)",
    re.IGNORECASE,
)
_SCALES = {"": 1.0, "k": 1e3, "m": 1e6}
_EFA = re.compile(r"NET/OFI.*provider is efa|Using network AWS Libfabric", re.IGNORECASE)
_SOCKET = re.compile(r"NET/Socket|Using network Socket", re.IGNORECASE)
_COMMAND = "Running entrypoint for job"  # Ray's own first line, which repeats what the person typed
_OTHER = re.compile(r"NET/(OFI|IB)\b.*(?:provider|Using)|Using network (\w+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Throughput:
    """A rate as the training printed it last: so many `unit` a second."""

    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Transport:
    """How NCCL moves data. `word`: "efa", "socket", another network's name, or "" where nothing tells."""

    word: str
    line: str = ""


def last_step(text: str) -> int | None:
    """The step in the last line that names one; None if none does."""
    for line in reversed(text.splitlines()):
        if found := _STEP.search(line) or _BAR.search(line):
            return int(found["step"].replace(",", ""))
    return None


def last_throughput(text: str) -> Throughput | None:
    """The rate in the last line that names one; None if none does."""
    for line in reversed(text.splitlines()):
        if found := _RATE_BEFORE.search(line) or _RATE_AFTER.search(line):
            value = float(found["value"].replace(",", "")) * _SCALES[found["scale"].lower()]
            return Throughput(value, f"{found['unit'].lower()}/s")
    return None


def transport(lines: Iterable[str]) -> Transport:
    """The transport that NCCL says it uses. One rank on TCP sockets slows all, so a socket wins."""
    found = Transport("")
    for line in lines:
        if _COMMAND in line:
            continue
        if _SOCKET.search(line):
            return Transport("socket", line.strip())
        if _EFA.search(line):
            found = Transport("efa", line.strip())
        elif not found.word and (other := _OTHER.search(line)):
            found = Transport((other[1] or other[2]).lower(), line.strip())
    return found
