"""How the read commands print: aligned plain text, with some colour on a terminal unless NO_COLOR is set.

`activity.printable` makes text of a job harmless. Nothing reads such text as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from midwatch.agents import activity
from midwatch.agents.activity import moment, printable
from midwatch.agents.executor.arming import Arming
from midwatch.agents.query.timeline import Attempt, Timeline
from midwatch.streams.records import Command, Decision, Finding, Hit, Incident, Line, Verdict
from midwatch.streams.records.incidents import RESUMED

_EVIDENCE_SHOWN = 8
_RIVALS_SHOWN = 6
_PHRASE = 400
_STYLES = {
    "failed": "bold red",
    "failing": "red",
    "blind": "yellow",
    "unheard": "yellow",
    "restarted": "cyan",
    "running": "green",
}


def console() -> Console:
    """Standard output, without line wrapping: a pipe gets the lines that a terminal shows."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


def columns(rows: Sequence[Sequence[str | Text]], gap: int = 2) -> Iterator[Text]:
    """Rows with their cells aligned; the last column is not padded."""
    cells = [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
    widths = [max(cell.cell_len for cell in column) for column in zip(*cells, strict=True)]
    for row in cells:
        out = Text()
        for cell, width in zip(row[:-1], widths[:-1], strict=True):
            out.append_text(cell)
            out.append(" " * (width - cell.cell_len + gap))
        yield out.append_text(row[-1])


def state_text(state: str) -> Text:
    """A job's state in its colour."""
    return Text(state, _STYLES.get(state, ""))


def place(verdict: Verdict) -> str:
    """The place of the root line, as `file:line`; "" if the verdict has none."""
    if not verdict.root_file:
        return ""
    number = "" if verdict.root_line_number is None else f":{verdict.root_line_number}"
    return f"{printable(verdict.root_file)}{number}"


def verdict_phrase(verdict: Verdict) -> str:
    """A verdict in one phrase: `crash by nccl_timeout (comms), transient`."""
    if verdict.state == "healthy":
        return "no failure"
    if verdict.state == "unknown":
        return "unknown: no line says why"
    if verdict.at_time_limit:
        return "time limit reached" + ("" if verdict.step is None else f" at step {verdict.step}")
    lasting = {True: "transient", False: "permanent", None: "unknown whether transient"}[verdict.transient]
    complete = "" if verdict.complete else ", incomplete"
    silent = f" (no word from {', '.join(verdict.given_up)})" if verdict.given_up else ""
    return f"{verdict.mode or 'end'} by {verdict.error_type} ({verdict.family}), {lasting}{complete}{silent}"


def incident_phrase(incident: Incident) -> str:
    """An incident in one phrase. Before an end there is no verdict, only the line that matched."""
    if incident.state == "withdrawn":
        return f"none: {printable(incident.verdict.remedy)}"
    if incident.state == "suspected" and incident.evidence:
        return f"nothing has ended, but a line says {printable(incident.evidence[0].error_type)}"
    if _is_open(incident):
        return "the attempt ended; how, is not known yet"
    return verdict_phrase(incident.verdict)


def _is_open(incident: Incident) -> bool:
    """Whether the scheduler's word, or last lines, may still tell how the attempt ended."""
    return incident.state == "ended" and incident.verdict.state == "unknown"


def timeline_text(timeline: Timeline, now_ms: int) -> Iterator[Text]:
    """The answer of `midwatch why`."""
    head = Text.assemble((printable(timeline.job), "bold"), "  ", state_text(timeline.state_at(now_ms)))
    if timeline.latest:
        head.append(f"  attempt {timeline.latest.number}")
    yield head
    yield from columns([("", name, text) for name, text in _summary(timeline)] or [("", "", "")])
    for attempt in reversed(timeline.attempts):
        yield from _attempt(attempt, timeline.same_as(attempt))
    yield Text("\nall steps", "bold")
    for step in timeline.steps:
        if line := timeline.line_of(step):
            yield Text(f"  {line}")


def _summary(timeline: Timeline) -> Iterator[tuple[str, str]]:
    if timeline.blind:
        yield (
            "blind",
            f"{printable(timeline.blind.detail)}: midwatch concludes nothing from silence and does nothing",
        )
    if timeline.last_fact:
        fact = timeline.last_fact
        exit_code = "" if fact.exit_code is None else f", exit code {fact.exit_code}"
        yield "scheduler", f"{printable(fact.new)} (id {printable(fact.native_id)}{exit_code})"
    if timeline.last_step is not None:
        yield "step", f"{timeline.last_step}, the last one seen"
    if timeline.last_heartbeat_ms is not None:
        nodes = f" of {len(timeline.nodes)} node(s)" if timeline.nodes else ""
        yield "heartbeat", f"{moment(timeline.last_heartbeat_ms)}, the last{nodes}"
    elif timeline.steps:
        yield "heartbeat", "none lately: without heartbeats midwatch cannot find a stall"
    if timeline.policy is not None:
        mode = "armed" if timeline.armed else "observed: midwatch says what it would do and does nothing"
        yield "policy", f"{printable(timeline.policy)}, {mode}"
    elif timeline.attempts:
        yield "policy", "no spec, so midwatch cannot start this job again: use `midwatch run -- …`"


def _attempt(attempt: Attempt, same: Sequence[int]) -> Iterator[Text]:
    yield Text(f"\nattempt {attempt.number}", "bold")
    rows: list[tuple[str, str, str | Text]] = []
    if attempt.incident:
        rows += [("", name, text) for name, text in _incident_rows(attempt.incident)]
        if same:
            rows.insert(1, ("", "again", _again(attempt.incident.verdict, same)))
    for finding in attempt.findings:
        rows.append(("", "finding", _finding(finding)))
    for decision in _without_repeats(attempt.decisions):
        rows.append(("", "decision", decision_text(decision)))
        rows += [("", "near miss", printable(miss)) for miss in decision.near_misses]
    for command in attempt.commands:
        rows.append(("", "command", _command(command, attempt)))
    if not rows:
        rows.append(("", "", "nothing yet"))
    yield from columns(rows)


def _again(verdict: Verdict, same: Sequence[int]) -> str:
    """Which attempts failed in this way before, as `as attempts 1 and 2: oom, by the rule cuda_oom`."""
    *most, last = map(str, same)
    which = f"attempts {', '.join(most)} and {last}" if most else f"attempt {last}"
    rule = f", by the rule {printable(verdict.rule)}" if verdict.rule else ""
    return f"as {which}: {printable(verdict.error_type)}{rule}"


def _without_repeats(decisions: Iterable[Decision]) -> Iterator[Decision]:
    """Leaves out each decision that only repeats the one before it, for a later revision."""
    last = None
    for decision in decisions:
        same = (decision.action, decision.policy, decision.reason, decision.near_misses, decision.command)
        if same != last:
            yield decision
        last = same


def _incident_rows(incident: Incident) -> Iterator[tuple[str, str | Text]]:
    verdict = incident.verdict
    yield "verdict", f"{incident_phrase(incident)}, {incident.state} (revision {incident.revision})"
    if verdict.root_line:
        yield "root line", Text.assemble((place(verdict), "cyan"), f"  {printable(verdict.root_line)}")
    around = {
        "node": verdict.node,
        "rank": verdict.rank,
        "step": verdict.step,
        "phase": verdict.phase,
        "rule": verdict.rule,
        **verdict.quantities,
    }
    if known := [
        f"{name} {printable(str(value))}" for name, value in around.items() if value not in (None, "")
    ]:
        yield "where", ", ".join(known)
    if verdict.chance and incident.state in ("ended", "settled"):
        yield "chance", f"{verdict.chance.share:.0%}: {printable(verdict.chance.sentence)}"
    if incident.silence is not None:
        yield "silence", f"{incident.silence:.0f} s counted by heartbeats"
    saved = incident.scheduler.saved if incident.scheduler else None
    if saved is not None and verdict.state != "healthy":
        phrase = activity.saved_phrase(saved, incident.ended_ms, verdict.step)
        yield "checkpoint", f"{phrase} ({printable(saved.path)})"
    if verdict.remedy and incident.state != "withdrawn" and not _is_open(incident):
        yield "remedy", printable(verdict.remedy)
    for hit in incident.evidence[:_EVIDENCE_SHOWN]:
        yield "evidence", _evidence(hit)
    if (hidden := len(incident.evidence) - _EVIDENCE_SHOWN) > 0:
        yield "", f"and {hidden} more lines; --json lists all"
    for rival in incident.other_candidates[:_RIVALS_SHOWN]:
        yield "not root", printable(rival.phrase, _PHRASE)
    if (hidden := len(incident.other_candidates) - _RIVALS_SHOWN) > 0:
        yield "", f"and {hidden} more candidates; --json lists all"
    for tally in incident.counts:
        yield "", f"{tally.rule}: {tally.count} more in {printable(tally.path)}"


def _evidence(hit: Hit) -> Text:
    return Text.assemble(
        (line_place(hit.line), "cyan"), f"  {hit.role} {hit.rule}: {printable(hit.line.text, 160)}"
    )


def line_place(line: Line) -> str:
    """`file:line` of a line, with its node and rank where they are known."""
    rank = line.rank if line.rank is not None else line.claimed_rank
    claimed = " (claimed)" if line.rank is None and line.claimed_rank is not None else ""
    speaker = ", ".join(
        part for part in (printable(line.node), "" if rank is None else f"rank {rank}{claimed}") if part
    )
    return f"{printable(line.path)}:{line.number}" + (f" [{speaker}]" if speaker else "")


def _finding(finding: Finding) -> Text:
    if finding.kind == RESUMED:
        path = finding.quantities.get("checkpoint", "")
        place = f" ({printable(path)})" if path else ""
        went_on = finding.detail.startswith(RESUMED)
        word = (RESUMED, "green") if went_on else ("checkpoint", "yellow")
        return Text.assemble(word, f": {printable(finding.detail)}{place}")
    state = "open" if finding.open else "clear again"
    return Text.assemble((printable(finding.kind), "yellow"), f" ({state}): {printable(finding.detail)}")


def decision_text(decision: Decision) -> Text:
    """A decision in one phrase, with its reason."""
    number = (
        f" {activity.count(decision.restart_number, decision.restart_limit)}"
        if decision.action == "restart"
        else ""
    )
    mode = "" if decision.armed else " (observed: not done)"
    return Text.assemble(
        (decision.action, "bold"), f"{number}{mode}, policy {decision.policy}: {printable(decision.reason)}"
    )


def _command(command: Command, attempt: Attempt) -> str:
    timed = [(at_ms, o) for at_ms, o in attempt.outcomes if o.command == command.id]
    states = " → ".join(["issued", *(o.state for _, o in timed)])
    at_ms, last = timed[-1] if timed else (0, None)
    ids = (
        f", id {printable(last.old_native_id)} → {printable(last.new_native_id)}"
        if last and last.new_native_id
        else ""
    )
    phrase = activity.checkpoint_phrase(last, at_ms, attempt.last_step) if last else ""
    path = f" ({printable(last.checkpoint)})" if last and last.checkpoint else ""
    from_step = f", {phrase}{path}" if phrase else ""
    reason = f": {printable(last.reason)}" if last and last.reason else ""
    return f"{command.action} {command.id[:12]} {states}{ids}{from_step}{reason}"


def job_rows(jobs: Iterable[tuple[Timeline, Arming]], now_ms: int) -> Iterator[Text]:
    """The table of `midwatch jobs`."""
    rows: list[tuple[str | Text, ...]] = [
        ("JOB", "STATE", "ACTING", "ATTEMPT", "STEP", "LAST HEARTBEAT", "WHY")
    ]
    for job, arming in jobs:
        blind = printable(job.blind.detail) if job.blind else ""
        cancelled = f"cancelled by {printable(job.cancelled_by)}" if job.cancelled_by else blind
        resumed = printable(job.resumed.detail) if job.resumed else ""
        why = incident_phrase(job.standing) if job.standing else cancelled or resumed
        rows.append(
            (
                printable(job.job),
                state_text(job.state_at(now_ms)),
                arming.word,
                str(job.latest.number) if job.latest else "-",
                "-" if job.last_step is None else str(job.last_step),
                "-" if job.last_heartbeat_ms is None else moment(job.last_heartbeat_ms),
                why,
            )
        )
    yield from columns(rows)


def incident_rows(listed: Iterable[tuple[Incident, bool, Attempt]]) -> Iterator[Text]:
    """The table of `midwatch incidents`: the incident, whether it stands, its attempt."""
    rows: list[tuple[str | Text, ...]] = [
        ("OPENED", "JOB", "ATTEMPT", "STATE", "DECISION", "VERDICT", "ROOT LINE")
    ]
    for incident, stands, attempt in listed:
        decision = attempt.decisions[-1].action if attempt.decisions else "-"
        rows.append(
            (
                moment(incident.opened_ms),
                printable(incident.job),
                str(incident.attempt),
                Text(incident.state, _STYLES["failed"] if stands else ""),
                f"{decision}, done" if attempt.restarted else decision,
                incident_phrase(incident),
                place(incident.verdict) or "-",
            )
        )
    yield from columns(rows)


def decision_rows(made: Iterable[Decision]) -> Iterator[Text]:
    """The table of `midwatch decisions`."""
    for decision in made:
        yield Text.assemble(
            f"{moment(decision.at_ms)}  {printable(decision.job)}  attempt {decision.attempt}  ",
            decision_text(decision),
        )
        for miss in decision.near_misses:
            yield Text(f"    near miss: {printable(miss)}")
