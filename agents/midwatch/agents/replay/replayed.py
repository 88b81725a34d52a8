"""What a replay of one job's log files gives."""

from __future__ import annotations

from dataclasses import dataclass

from midwatch.streams.records import Decision, Finding, Hit, Rival, SchedulerFact, Verdict


@dataclass(frozen=True, slots=True)
class EarlierStart:
    """A start whose lines stand in a file in front of those of a later start, and how it ended."""

    path: str
    first: int
    last: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Replayed:
    """The verdict and decision of the watch on one job. `assumed`: the assumptions behind them.

    `hits` are the first `MOST_HITS`, and `unlisted` counts the others. `rivals` could have been the root.
    `steps`: the first and the last step that the job printed. `told`: the end as the caller knew it.
    """

    job: str
    verdict: Verdict
    decision: Decision
    findings: tuple[Finding, ...]
    evidence: tuple[Hit, ...]
    hits: tuple[Hit, ...]
    assumed: tuple[str, ...]
    unlisted: int = 0
    rivals: tuple[Rival, ...] = ()
    steps: tuple[int, int] | None = None
    earlier: tuple[EarlierStart, ...] = ()
    told: SchedulerFact | None = None
