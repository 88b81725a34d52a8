"""HTCondor's event log may be shared by jobs that a person submits one after the other. The last one counts.

Source: htcondor/htcondor src/condor_utils/condor_event.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from midwatch.agents.replay.reading.log_files import LogFile, text_of

_EVENT = re.compile(
    rb"^(?P<event>000|005|009) \((?P<cluster>\d+)\.(?P<process>\d+)\.\d+\) [^\n]*\n"
    rb"(?P<node>[ \t]+DAG Node: )?",
    re.MULTILINE,
)
_SUBMITTED = b"000"  # the others: the job terminated, or it was removed
_FROM = b" Job submitted from host: <"


def behind_ended_jobs(file: LogFile) -> Iterator[tuple[int, int]]:
    """The places (offset, number) at which a job is submitted while no earlier one is left. Raises OSError.

    The processes of one cluster are one job, and so are the nodes of a DAG.
    """
    text, at, number = text_of(file), 0, 1
    if _FROM not in text:
        return
    left, cluster = set[tuple[bytes, bytes]](), b""
    for found in _EVENT.finditer(text):
        own = (found["cluster"], found["process"])
        if found["event"] != _SUBMITTED:
            left.discard(own)
            continue
        if found["node"]:
            return
        if cluster and not left and cluster != found["cluster"]:
            number += text.count(b"\n", at, found.start())
            at = found.start()
            yield at, number
        cluster = found["cluster"]
        left.add(own)
