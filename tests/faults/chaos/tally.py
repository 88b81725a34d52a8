"""What was injected and what the outside ledger then found, one JSON line a case, for the report.

Kept only where `MIDWATCH_CHAOS_TALLY` names a file. A case that fails is kept too, with `held` false.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FILE = "MIDWATCH_CHAOS_TALLY"


@dataclass
class Count:
    """One case. `hits`: how often each failpoint or fault was really hit; `found`: the judge's numbers."""

    part: str
    case: str
    seed: int
    hits: dict[str, int] = field(default_factory=dict)
    found: dict[str, float] = field(default_factory=dict)
    held: bool = False
    why: str = ""  # it did not hold
    seconds: float = 0.0
    load: float = 0.0

    def hit(self, name: str) -> None:
        self.hits[name] = self.hits.get(name, 0) + 1

    def add(self, **numbers: float) -> None:
        """To the judge's numbers, summed over the rounds."""
        for name, number in numbers.items():
            self.found[name] = self.found.get(name, 0) + number


@contextmanager
def counting(part: str, case: str, seed: int) -> Iterator[Count]:
    """The count of one case, kept when the case ends, however it ends."""
    count, began = Count(part, case, seed), time.monotonic()
    try:
        yield count
        count.held = True
    except BaseException as error:  # also a run that is cut short
        count.why = "cut short" if isinstance(error, KeyboardInterrupt) else _first_line(error)
        raise
    finally:
        count.seconds, count.load = round(time.monotonic() - began, 1), round(os.getloadavg()[0], 1)
        print(f"{part}: {case}: {count.hits}, {count.found}, {count.seconds} s, held: {count.held}")
        if path := os.environ.get(FILE):
            with Path(path).open("a") as file:  # one short write a line: cases may run side by side
                file.write(json.dumps(asdict(count)) + "\n")


def _first_line(error: BaseException) -> str:
    told = str(error).splitlines()
    return f"{type(error).__name__}: {told[0][:120]}" if told else type(error).__name__


def read(path: Path) -> list[dict[str, Any]]:
    """All cases of a tally, in the order in which they ended."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
