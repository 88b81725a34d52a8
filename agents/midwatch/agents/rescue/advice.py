"""After a failure: what is to blame, and the key to change with both values. It changes nothing itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from midwatch.agents.query.timeline import Timeline
from midwatch.agents.rescue.job_config import find_config
from midwatch.agents.rescue.yaml_patch import keys, load
from midwatch.streams.errors import MidwatchError
from midwatch.streams.records import Verdict

_SOFTWARE = ("memory", "numerics", "code")
_HARDWARE = ("hardware",)
_BATCH = re.compile(r"batch_?size|\bbatch\b|\bbsz?\b|_bs\b", re.IGNORECASE)
_EVALUATION = re.compile(r"(?:^|[._])(?:val|valid|validation|eval|evaluation|test)(?:$|[._])", re.IGNORECASE)
_OF_ONE_STEP = re.compile(r"micro|per_device|per_gpu|per_rank", re.IGNORECASE)
_OF_ALL = re.compile(r"global|total|accum", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Change:
    """A key of the job's configuration `file`, its value there, and the value to try."""

    file: str
    key: str
    old: int
    new: int


def blame(verdict: Verdict) -> str:
    """Whether hardware or software failed, in one sentence; "" where the verdict does not tell."""
    if verdict.state != "failed":
        return ""
    if verdict.error_type in _HARDWARE:
        return "hardware: exclude the node before the next start"
    if verdict.error_type == "oom":
        return (
            "software: the job asked for more memory than the device has, which is no fault of the hardware"
        )
    return "software, not hardware" if verdict.family in _SOFTWARE else ""


def change_for(timeline: Timeline) -> Change | None:
    """The change that may avoid the latest attempt's failure; None if nothing here tells one.

    After a device ran out of memory that is half the batch of the phase in which it did.
    """
    incident = timeline.latest.incident if timeline.latest else None
    if incident is None or incident.verdict.error_type != "oom" or timeline.signed is None:
        return None
    try:
        config = find_config(timeline.signed)
        known = dict(keys(load(config.text, config.name)))
    except MidwatchError:
        return None
    key = _batch_key(known, evaluating=incident.verdict.phase == "evaluation")
    return Change(config.name, key, known[key], known[key] // 2) if key else None


def _batch_key(known: dict[str, object], *, evaluating: bool) -> str:
    """The batch of one step in that phase; "" if there is none, or several that could be meant."""
    sizes = [
        key for key, value in known.items() if isinstance(value, int) and value > 1 and _BATCH.search(key)
    ]
    sizes = [key for key in sizes if bool(_EVALUATION.search(key)) == evaluating and not _OF_ALL.search(key)]
    exact = [key for key in sizes if _OF_ONE_STEP.search(key)] or sizes
    return exact[0] if len(exact) == 1 else ""
