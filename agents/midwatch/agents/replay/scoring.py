"""How good the verdicts are on labelled logs: counts with Wilson intervals and a confusion table. Pure.

- Verdict: any statement that the run failed. Its family is the family of its error type.
- Root line: right if the prediction is one line that holds the labelled line.
- Action: a restart is right for a failure that an operator would restart unchanged (`transient`). A stop is
  right for every other failure, and no action for a healthy log. A hold or a cancel counts as a stop.
- `also_root` and `also_type` hold answers that are as right as the label; they always count. Actions in
  `also_action` count only in a lenient score.

The intervals assume independent excerpts; excerpts of one thread are not independent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from midwatch.streams.errors import UsageError
from midwatch.streams.records.error_types import family

HEALTHY = "none"
_NEAR = 3
_Z = 1.959964  # of the 95 % interval


@dataclass(frozen=True, slots=True)
class Labelled:
    """One excerpt with its label. `error_type` "none": the run was healthy."""

    id: str
    log: str
    error_type: str
    transient: bool
    root_line: str
    cascade: bool = False
    also_root: tuple[str, ...] = ()
    also_type: tuple[str, ...] = ()
    also_action: tuple[str, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """The error types that are right."""
        return (self.error_type, *self.also_type)

    @property
    def roots(self) -> tuple[str, ...]:
        """The root lines that are right; none for a healthy run."""
        return tuple(line.strip() for line in (self.root_line, *self.also_root) if line.strip())

    @property
    def failed(self) -> bool:
        return self.error_type != HEALTHY

    @property
    def right_action(self) -> str:
        """The right action: restart, stop or none."""
        return "none" if not self.failed else "restart" if self.transient else "stop"


@dataclass(frozen=True, slots=True)
class Prediction:
    """The diagnosis of one excerpt. `error_type` is empty if the diagnosis names no failure."""

    error_type: str = ""
    root_line: str = ""
    action: str = "none"

    @property
    def family(self) -> str:
        found = family(self.error_type)
        return found if found != HEALTHY or not self.error_type else "other"

    @property
    def verdict(self) -> bool:
        return bool(self.error_type) or self.counted_action != "none"

    @property
    def counted_action(self) -> str:
        """restart, stop or none: an action that starts no new attempt counts as a stop."""
        return {"hold": "stop", "cancel": "stop"}.get(self.action, self.action)


Judged = tuple[Labelled, Prediction]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A count and its total."""

    hits: int
    of: int

    def interval(self) -> tuple[float, float] | None:
        """The Wilson interval at 95 %, as fractions; None if the total is 0."""
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
    """Read the labels from numbered JSON objects.

    Raises:
        UsageError: a row lacks a field; the error names the file and the line.
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
                    also_root=tuple(row.get("also_root") or ()),
                    also_type=tuple(row.get("also_type") or ()),
                    also_action=tuple(row.get("also_action") or ()),
                )
            )
        except KeyError as error:
            raise UsageError(
                f"the row has no field {error}",
                where=f"{where}:{number}",
                remedy="each line needs log, error_type, transient and root_line",
            ) from error
    return found


def root_named(row: Labelled, prediction: Prediction) -> bool:
    """Whether the predicted line holds a labelled one."""
    line = prediction.root_line.strip()
    return "\n" not in line and any(root in line for root in row.roots)


def root_near(row: Labelled, prediction: Prediction) -> bool:
    """Whether the predicted line holds a labelled one, or stands at most three lines from it."""
    if root_named(row, prediction):
        return True
    lines = [line.strip() for line in row.log.split("\n")]
    if not prediction.root_line:
        return False
    labelled = [i for i, line in enumerate(lines) if line in row.roots]
    predicted = [i for i, line in enumerate(lines) if line == prediction.root_line.strip()]
    return any(abs(a - b) <= _NEAR for a in labelled for b in predicted)


def _share(judged: Sequence[Judged], right: Callable[[Labelled, Prediction], bool]) -> Ratio:
    return Ratio(sum(1 for row, prediction in judged if right(row, prediction)), len(judged))


def measure(judged: Sequence[Judged]) -> dict[str, Ratio]:
    """Every measure by name, in the order of the output."""
    failures = [(r, p) for r, p in judged if r.failed]
    healthy = [(r, p) for r, p in judged if not r.failed]
    transient = [(r, p) for r, p in failures if r.transient]
    lasting = [(r, p) for r, p in failures if not r.transient]
    cascades = [(r, p) for r, p in failures if r.cascade]
    restarts = [(r, p) for r, p in judged if p.counted_action == "restart"]

    def same_family(row: Labelled, prediction: Prediction) -> bool:
        return prediction.family in {family(each) for each in row.types}

    return {
        "detected": _share(failures, lambda _, p: p.verdict),
        "family": _share(failures, same_family),
        "exact type": _share(failures, lambda r, p: p.error_type in r.types),
        "root line": _share(failures, root_named),
        "root line within 3 lines": _share(failures, root_near),
        "family of cascades": _share(cascades, same_family),
        "root line of cascades": _share(cascades, root_named),
        "false alarms": _share(healthy, lambda _, p: p.verdict),
        "restart precision": _share(restarts, lambda r, _: r.transient),
        "restart recall": _share(transient, lambda _, p: p.counted_action == "restart"),
        "wrong restarts of lasting failures": _share(lasting, lambda _, p: p.counted_action == "restart"),
        "wrong restarts of healthy runs": _share(healthy, lambda _, p: p.counted_action == "restart"),
        "right stops of lasting failures": _share(lasting, lambda _, p: p.counted_action == "stop"),
        "action right": _share(judged, lambda r, p: p.counted_action == r.right_action),
    }


def confusion(judged: Sequence[Judged]) -> dict[tuple[str, str], int]:
    """How often the diagnosis gave which family for a true one: {(true, predicted): count}."""
    return dict(
        Counter(
            (
                family(row.error_type),
                prediction.family if prediction.error_type or not prediction.verdict else "other",
            )
            for row, prediction in judged
        )
    )


def leniently(judged: Iterable[Judged]) -> list[Judged]:
    """The pairs with each label's transience as the verdict has it, where the label takes both actions."""
    return [
        (replace(row, transient=prediction.counted_action == "restart"), prediction)
        if prediction.counted_action in row.also_action
        else (row, prediction)
        for row, prediction in judged
    ]


def mistakes(judged: Sequence[Judged]) -> list[dict[str, str]]:
    """One row for each excerpt with a wrong measure. A row holds no text of a log."""
    return [
        {
            "id": row.id,
            "is": row.error_type,
            "said": prediction.error_type or HEALTHY,
            "wrong": ", ".join(wrong),
        }
        for row, prediction in judged
        if (wrong := _wrong(row, prediction))
    ]


def _wrong(row: Labelled, prediction: Prediction) -> list[str]:
    right = {
        "family": prediction.family in {family(each) for each in row.types},
        "root line": not row.failed or root_named(row, prediction),
        "action": prediction.counted_action == row.right_action,
    }
    return [name for name, is_right in right.items() if not is_right]
