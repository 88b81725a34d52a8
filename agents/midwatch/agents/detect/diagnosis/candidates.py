"""A candidate: a line that may be the root, with what other lines make of it. Pure.

Every candidate but the root has one reason why it is not the root. All reasons stand here as sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from midwatch.streams.records import Hit, Line


@dataclass(frozen=True, slots=True)
class NotRoot:
    """Why a candidate is not the root. `name` is a key of `SENTENCES`; `line` is the line that shows it."""

    name: str
    line: Line | None = None

    def sentence(self, of: Line) -> str:
        """The reason in plain words, with the place of the line that shows it as seen from the candidate."""
        return SENTENCES[self.name].format(line="" if self.line is None else _place(self.line, of))


def _place(line: Line, seen_from: Line) -> str:
    if line.file == seen_from.file:
        return f"line {line.number}"
    node = f" of {line.node}" if line.node != seen_from.node else ""
    return f"{line.path}:{line.number}{node}"


@dataclass(frozen=True, slots=True)
class RootCandidate:
    """A line that may be the root.

    `hit`: with the role that other lines leave it. `reason`: why they changed it, None if they did not.
    `set_aside`: the line cannot be the root, whatever else is there.
    """

    hit: Hit
    reason: NotRoot | None = None
    set_aside: bool = False


def beside(hit: Hit, reason: NotRoot) -> RootCandidate:
    """The line as one that ended nothing. It is no evidence either."""
    return RootCandidate(replace(hit, role="context"), reason, set_aside=True)


def standing_aside(noted: Sequence[Hit]) -> list[RootCandidate]:
    """The noted lines that would be candidates if they reported what their rules look for."""
    return [RootCandidate(hit, NotRoot(hit.aside), set_aside=True) for hit in noted if hit.aside in SENTENCES]


def consequence(hit: Hit, reason: NotRoot) -> RootCandidate:
    """The line as the consequence of another one. Nothing then shows that a restart would succeed."""
    return RootCandidate(replace(hit, role="consequence", transient=None), reason)


def speaker(hit: Hit) -> tuple[int | None, int | None]:
    """The rank that wrote the line, as the configuration knows it and as the text claims it."""
    return (hit.line.rank, hit.line.claimed_rank)


SENTENCES: Mapping[str, str] = {
    # its own words or its place show that it reports no failure
    "mentioned": "it only supposes or cites such a failure",
    "quiet": "its writer logged it as information or as a warning",
    "handled": "the program handled this exception",
    "ignored": "the program went on behind it",
    "left behind": "the job made two more steps behind it",
    "beside": "it comes from code beside the training",
    "quoted": "it is source code of a traceback, or an outer entry of an error stack",
    # another line makes it a consequence, or shows that it ended nothing
    "asked for itself": "the job itself asked for this requeue at {line}",
    "went another way": "the program went on another way at {line}",
    "another program since": "its program ended by that, and another one failed at {line}",
    "transport given up": "NCCL only tried NVLink SHARP here, and no error of a collective follows",
    "only torn down": "the launchers closed their meeting at {line}, and nothing else failed",
    "broken by the watchdog": "the watchdog had broken this collective at {line}",
    "watchdog says why": "it says only that some operation failed or timed out; {line} says which way",
    "watchdog tells more": "the watchdog's report at {line} tells more about the same wait",
    "raised by the wait": "it repeats that the same rank waited in vain at {line}",
    "raised elsewhere": "other ranks raised the same words after a wait in vain, as at {line}",
    "parent's notice": "a parent only saw its child end; {line} tells why",
    "taken away since": "only a thread of the job ended here; the scheduler took the job away at {line}",
    "thrown while ending": "a thread of a process that ended threw it; {line} tells why it ended",
    "node failed": "these are last words of a node that failed, see {line}",
    "killed by the agent": "the launcher killed a worker that hung while it closed, see {line}",
    "after an end": "it lost or awaited a process that had failed at {line}",
    "asked to end": "its process had been asked to end at {line}",
    "news of a peer": "another rule knows the same line as news of a peer's exit",
    "srun cleaned up": "srun itself ended the step after {line}",
    "echo of a report": "its process had reported a failure at {line} and was ending",
    "echo of an interrupt": "its process was interrupted at {line} and was ending",
    # the root has the better place in the order
    "a wait": "it only waited for another process, and {line} names a cause",
    "a summary": "it only sums up how a process ended, and {line} names a cause",
    "a consequence": "it only follows from a failure, and {line} names a cause",
    "an announcement": "it only announces the exception below it, and {line} names a cause",
    "less specific": "its rule knows only that something failed, and the rule of {line} knows what",
    "no kind": "it names no kind of failure, and {line} does",
    "no end": "it does not say how a process ended, and {line} does",
    "later": "it stands after {line}",
    "same time": "its time is that of {line}, whose place comes first",
    "same line": "another rule knows more about the same line",
    # another line tells the same failure better
    "told in full": "{line} tells the same failure in full",
    "outer entry": "it is an outer entry of the error stack whose innermost one is {line}",
    "process left": "a process had ended its part before, at {line}",
    "explained": "it shows only that the run ended; {line} tells why",
    "NCCL's own word": "NCCL's own warning at {line} tells why",
    # no line is the root
    "closing": "the job had reported its success, and this comes from its closing",
    "success": "the job ended with success",
    "scheduler tells more": "the scheduler's record tells more than the line",
    "hang": "it reports a hang; the root is the last line of progress before it",
}
