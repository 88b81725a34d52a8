"""What a line calls itself: a warning or information of its own writer is no failure. Pure."""

from __future__ import annotations

import re

_HEAD = 240  # bytes in which a line names its level; what stands behind is its message

# The first level word of a line decides. NCCL has no level above WARN, so its warnings are loud.
_LEVEL = re.compile(
    rb"(?P<loud>NCCL WARN|\b(?:ERROR|CRITICAL|FATAL)|[Ee]rror:"
    rb"|(?:\A|[\s\])])[EF]\d{4} \d\d:\d\d:\d\d|\[[EF](?:\d{3,4} [\d:.]+)? ?\w+\.(?:cpp|hpp|cc|h):)"
    rb"|(?P<quiet>\b(?:INFO|DEBUG|NOTICE|TRACE|WARNING|WARN)\b"
    rb"|\b(?:[A-Z]\w*)?[Ww]arning: "
    rb"|(?:\A|[\s\])])[IWD]\d{4} \d\d:\d\d:\d\d"  # glog and klog: W0302 11:52:40
    rb"|\[[IWD](?:\d{3,4} [\d:.]+)? ?\w+\.(?:cpp|hpp|cc|h):"  # c10: [W302 11:52:40.1 socket.cpp:12]
    rb"|(?:\A|[\s\])])\[[IWD]\] "
    rb"|: [IW] (?:tensorflow|external|\w+)/"  # TensorFlow: 2020-10-28 03:51:08.1: W tensorflow/core/..
    rb"|\[NeMo [WI] )"
)
# Weights & Biases never ends a run by what it logs: it raises if it must.
_SIDE_SHOW = re.compile(rb"\A\W{0,8}(?:\([^()]{0,80}pid=[^()]{0,80}\)\W{0,8})?wandb: ")


def is_quiet(line: bytes) -> bool:
    """Whether the writer of the line calls it a warning, information or less."""
    head = line[:_HEAD]
    if _SIDE_SHOW.match(head):
        return True
    found = _LEVEL.search(head)
    return found is not None and found["quiet"] is not None
