"""Lines that a wrapper copies from the program that it started, each through its own logger. Pure.

Such a wrapper calls each line information, or a warning, whatever it says. A logger of the job itself writes
its level once, in front of a message. Neither a frame of a traceback nor another logger's clock and level
begins one.
"""

from __future__ import annotations

import re
from functools import lru_cache

from midwatch.streams.lines.launcher_prefix import COLLECTED, LOGGED, OF_ANOTHER

_OF_ANOTHER_PROGRAM = (
    r" {0,4}File \"[^\"\n]{1,300}\", line \d+, in ",
    r"-{2,6}> \d+ ",  # IPython's frame
    OF_ANOTHER,
    r"[IW]\d{4} \d\d:\d\d:\d\d",  # glog
    r"\[[IW](?:\d{3,4} [\d:.]+)? ?\w+\.(?:cpp|cc|hpp|h):",  # c10
    r"\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] ",  # dmesg -T
    r"\[?\d{4}-\d\d-\d\d[T ,]+\d\d:\d\d:\d\d[^\n]{1,60}?\b(?:INFO|WARNING|ERROR|DEBUG)\b",
    r"(?:INFO|WARNING|ERROR|DEBUG):[\w.]+:",
    r"\[\d{4}-\d\d-\d\dT[\d:.]+\] error: ",  # slurmstepd
    r"(?:kernel|srun|wandb): ",
)
_COPIED = re.compile(rf"(?m)^{LOGGED}{COLLECTED}(?:{'|'.join(_OF_ANOTHER_PROGRAM)})".encode())


@lru_cache(maxsize=2)
def are_copied(text: bytes) -> bool:
    """Whether a logger copies the lines of this text, as one of them shows that is no message of its own."""
    return (b"INFO" in text or b": WARNING/" in text) and _COPIED.search(text) is not None
