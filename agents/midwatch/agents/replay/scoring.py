"""How good the verdicts are on labelled logs: counts with Wilson intervals and a confusion table. Pure.

What counts as right: a verdict is any statement that the run failed; its family is that of its error type;
the root line is right if it is one line that holds the labelled one; a start again is right for what an
operator would start again unchanged (`transient`), no new start for any other failure, nothing for a healthy
log. Holding or cancelling starts nothing, so it counts as a stop. Excerpts of one thread are not independent;
the intervals ignore that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from midwatch.streams.errors import UsageError
from midwatch.streams.records.error_types import family

HEALTHY = "none"
_NEAR = 3
_Z = 1.959964  # of the 95 % interval


@dataclass(frozen=True, slots=True)
class Labelled:
    """One excerpt with what it is known to show. `error_type` "none": the run was healthy."""

    id: str
    log: str
    error_type: str
    transient: bool
    root_line: str
    cascade: bool = False

    @property
    def failed(self) -> bool:
        return self.error_type != HEALTHY

    @property
    def wanted(self) -> str:
        """restart, stop or none."""
        return "none" if not self.failed else "restart" if self.transient else "stop"


@dataclass(frozen=True, slots=True)
class Said:
    """What was said of one excerpt; no error type if it did not fail."""

    error_type: str = ""
    root_line: str = ""
    action: str = "none"

    @property
    def family(self) -> str:
        found = family(self.error_type)
        return found if found != HEALTHY or not self.error_type else "other"

    @property
    def verdict(self) -> bool:
        return bool(self.error_type) or self.done != "none"

    @property
    def done(self) -> str:
        """restart, stop or none: what starts no new attempt is a stop."""
        return {"hold": "stop", "cancel": "stop"}.get(self.action, self.action)


Judged = tuple[Labelled, Said]


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many of how many."""

    hits: int
    of: int

    def interval(self) -> tuple[float, float] | None:
        """The Wilson interval at 95 %, as fractions; None of nothing."""
        if self.of == 0:
            return None
        share, spread = self.hits / self.of, 1 + _Z * _Z / self.of
        centre = (share + _Z * _Z / (2 * self.of)) / spread
        half = _Z * math.sqrt(share * (1 - share) / self.of + _Z * _Z / (4 * self.of**2)) / spread
        return max(0.0, centre - half), min(1.0, centre + half)

    def __str__(self) -> str:
        bounds = self.interval()
        if bounds is None:
            return "-"
        low, high = (round(100 * bound) for bound in bounds)
        return f"{self.hits}/{self.of} {100 * self.hits / self.of:.0f}% [{low},{high}]"


def read_labelled(rows: Iterable[tuple[int, Mapping[str, Any]]], where: str) -> list[Labelled]:
    """From numbered JSON objects.

    Raises:
        UsageError: a row lacks a field, with the file's name and the row's line.
    """
    found = []
    for number, row in rows:
        try:
            found.append(
                Labelled(
                    id=str(row.get("id", number)),
                    log=str(row["log"]),
                    error_type=str(row["error_type"] or HEALTHY),
                    transient=bool(row["transient"]),
                    root_line=str(row["root_line"] or ""),
                    cascade=bool(row.get("cascade", False)),
                )
            )
        except KeyError as error:
            raise UsageError(
                f"the row has no field {error}",
                where=f"{where}:{number}",
                remedy="each line needs log, error_type, transient and root_line",
            ) from error
    return found


def root_named(row: Labelled, said: Said) -> bool:
    """Whether the predicted line holds the labelled one."""
    line = said.root_line.strip()
    return bool(line) and bool(row.root_line) and "\n" not in line and row.root_line.strip() in line


def root_near(row: Labelled, said: Said) -> bool:
    """Whether it does, or stands at most three lines from it."""
    if root_named(row, said):
        return True
    lines = [line.strip() for line in row.log.split("\n")]
    if not said.root_line or not row.root_line:
        return False
    wanted = [i for i, line in enumerate(lines) if line == row.root_line.strip()]
    said_at = [i for i, line in enumerate(lines) if line == said.root_line.strip()]
    return any(abs(a - b) <= _NEAR for a in wanted for b in said_at)


def _share(judged: Sequence[Judged], right: Callable[[Labelled, Said], bool]) -> Ratio:
    return Ratio(sum(1 for row, said in judged if right(row, said)), len(judged))


def measure(judged: Sequence[Judged]) -> dict[str, Ratio]:
    """Every measure by name, in the order in which they are shown."""
    failures = [(r, s) for r, s in judged if r.failed]
    healthy = [(r, s) for r, s in judged if not r.failed]
    transient = [(r, s) for r, s in failures if r.transient]
    lasting = [(r, s) for r, s in failures if not r.transient]
    cascades = [(r, s) for r, s in failures if r.cascade]
    restarts = [(r, s) for r, s in judged if s.done == "restart"]

    def same_family(row: Labelled, said: Said) -> bool:
        return said.family == family(row.error_type)

    return {
        "detected": _share(failures, lambda _, s: s.verdict),
        "family": _share(failures, same_family),
        "exact type": _share(failures, lambda r, s: s.error_type == r.error_type),
        "root line": _share(failures, root_named),
        "root line within 3 lines": _share(failures, root_near),
        "family of cascades": _share(cascades, same_family),
        "root line of cascades": _share(cascades, root_named),
        "false alarms": _share(healthy, lambda _, s: s.verdict),
        "restart precision": _share(restarts, lambda r, _: r.transient),
        "restart recall": _share(transient, lambda _, s: s.done == "restart"),
        "wrong restarts of lasting failures": _share(lasting, lambda _, s: s.done == "restart"),
        "wrong restarts of healthy runs": _share(healthy, lambda _, s: s.done == "restart"),
        "right stops of lasting failures": _share(lasting, lambda _, s: s.done == "stop"),
        "action right": _share(judged, lambda r, s: s.done == r.wanted),
    }


def confusion(judged: Sequence[Judged]) -> dict[tuple[str, str], int]:
    """How often a true family was called another: {(true, said): count}."""
    return dict(
        Counter(
            (family(row.error_type), said.family if said.error_type or not said.verdict else "other")
            for row, said in judged
        )
    )


def mistakes(judged: Sequence[Judged]) -> list[dict[str, str]]:
    """What went wrong, a row each; no text of any log."""
    return [
        {"id": row.id, "is": row.error_type, "said": said.error_type or HEALTHY, "wrong": ", ".join(wrong)}
        for row, said in judged
        if (wrong := _wrong(row, said))
    ]


def _wrong(row: Labelled, said: Said) -> list[str]:
    right = {
        "family": said.family == family(row.error_type),
        "root line": not row.failed or root_named(row, said),
        "action": said.done == row.wanted,
    }
    return [what for what, is_right in right.items() if not is_right]
