"""Incidents as decide gets them, made up."""

from __future__ import annotations

from midwatch.streams.records import Hit, Incident, Line, Mode, SchedulerFact, Verdict


def incident(
    *hits: Hit,
    error_type: str = "",
    mode: Mode = "crash",
    said: SchedulerFact | None = None,
    silence: float | None = None,
) -> Incident:
    """A settled end; the first hit is the root."""
    root = hits[0] if hits else None
    verdict = Verdict(
        state="failed",
        mode=mode,
        error_type=error_type or (root.error_type if root else "unknown"),
        subsystem=root.subsystem if root else "",
        rule=root.rule if root else "",
    )
    return Incident(
        id="i",
        job="local:ada/llm",
        attempt=1,
        incarnation="local:1:1",
        state="settled",
        revision=1,
        verdict=verdict,
        evidence=hits,
        scheduler=said,
        silence=silence,
        words=() if silence is not None and said is None else ("scheduler",),
    )


def hit(rule: str, error_type: str = "", *, subsystem: str = "", **captures: str) -> Hit:
    """A line that a rule found."""
    line = Line(f"{rule}!", "/l/a.log", 1, 0, 0.0, "n0")
    return Hit(rule, "cause", error_type, subsystem, "error", None, line, 1, "g", captures=captures)


def fact(old: str, new: str, *, cluster: str = "slurm", mode: Mode | None = "crash") -> SchedulerFact:
    """What the scheduler says of the end."""
    return SchedulerFact("local:ada/llm", "local:1:1", "1", old, new, ended=True, mode=mode, cluster=cluster)
