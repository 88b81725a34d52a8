"""Reasons: why a candidate is not the root. Each names the feature in which its line is worse. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

SetAside = Literal["hedged", "handled", "outlived", "beside", "quoted", "closing", "repeated"]
"""Features of a line that cannot be the root, whatever else is there.

- hedged: it only supposes or cites a failure, or its writer called it none
- handled: the program got over it, or had asked for it
- outlived: the job, or another program of it, worked on behind it
- beside: it comes from code beside the training
- quoted: it is source code, or another entry of an error stack or of a report
- closing: its process was ending already, for another reason or after its work
- repeated: another line reports the same thing first-hand
"""
Feature = Literal[SetAside, "follows", "general", "kindless", "endless", "place", "untyped", "told", "none"]
"""The features of the order, and two more.

`told`: another line tells the same failure better. `none`: no line is the root.
"""


SET_ASIDE: tuple[SetAside, ...] = get_args(SetAside)


class WhyNot(NamedTuple):
    """The feature in which the line is worse, and why. `{line}`: the place of the line that shows it."""

    feature: Feature
    sentence: str


REASONS: Mapping[str, WhyNot] = {
    # its own words or its place show that it reports no failure
    "mentioned": WhyNot("hedged", "it only supposes or cites such a failure"),
    "quiet": WhyNot("hedged", "its writer logged it as information or as a warning"),
    "handled": WhyNot("handled", "the program handled this exception"),
    "run again": WhyNot("handled", "HTCondor ran the job again behind it, by itself"),
    "ignored": WhyNot("handled", "the program went on behind it"),
    "left behind": WhyNot("outlived", "the job made two more steps behind it"),
    "beside": WhyNot("beside", "it comes from code beside the training"),
    "quoted": WhyNot(
        "quoted", "it is source code of a traceback, or another entry of an error stack or report"
    ),
    # another line shows that it ended nothing
    "asked for itself": WhyNot("handled", "the job itself asked for this requeue at {line}"),
    "went another way": WhyNot("handled", "the program went on another way at {line}"),
    "got over": WhyNot("handled", "the program went on behind it, until {line} ended it"),
    "transport given up": WhyNot(
        "handled", "NCCL only tried NVLink SHARP or CollNet here, and no error of a collective follows"
    ),
    "another program since": WhyNot(
        "outlived", "its program ended by that, and another one failed at {line}"
    ),
    "script went on": WhyNot(
        "outlived", "its script went on behind it, and what it launched then failed at {line}"
    ),
    "taken away since": WhyNot(
        "outlived", "only a thread of the job ended here; the scheduler took the job away at {line}"
    ),
    "days before": WhyNot("outlived", "the driver printed it a day or more before {line}"),
    "only torn down": WhyNot(
        "closing", "the launchers closed their meeting at {line}, and nothing else failed"
    ),
    "server asked to end": WhyNot("closing", "its server had been asked to end at {line}, and closed"),
    "link not closed": WhyNot("closing", "NCCL only could not close a link, as {line} says"),
    "shut down": WhyNot("closing", "Python was shutting down behind the end of its script, as {line} shows"),
    "stray word": WhyNot("closing", "a shell went on to it after the failure at {line}"),
    "ended by the agent": WhyNot(
        "closing", "the launcher ended this worker after one failed by itself, {line}"
    ),
    "srun cleaned up": WhyNot("closing", "srun itself ended the step after {line}"),
    "echo of a report": WhyNot("closing", "its process had reported a failure at {line} and was ending"),
    "echo of an interrupt": WhyNot("closing", "its process was interrupted at {line} and was ending"),
    "watchdog says why": WhyNot(
        "repeated", "it says only that some operation failed or timed out; {line} says which way"
    ),
    "news of a peer": WhyNot("repeated", "another rule knows the same line as news of a peer's exit"),
    # another line makes it a consequence
    "broken by the watchdog": WhyNot("follows", "the watchdog had broken this collective at {line}"),
    "raised by the wait": WhyNot("follows", "it repeats that the same rank waited in vain at {line}"),
    "raised elsewhere": WhyNot(
        "follows", "other ranks raised the same words after a wait in vain, as at {line}"
    ),
    "parent's notice": WhyNot("follows", "a parent only saw its child end; {line} tells why"),
    "not built": WhyNot("follows", "it misses an extension whose build failed at {line}"),
    "thrown while ending": WhyNot(
        "follows", "a thread of a process that ended threw it; {line} tells why it ended"
    ),
    "node failed": WhyNot("follows", "these are last words of a node that failed, see {line}"),
    "scheduler's signal": WhyNot("follows", "the scheduler asked it to end, and {line} tells why"),
    "removed": WhyNot("follows", "somebody removed the job from the queue, see {line}"),
    "card failed": WhyNot("follows", "the driver says at {line} that a card of this node failed"),
    "killed by the agent": WhyNot(
        "follows", "the launcher killed a worker that hung while it closed, see {line}"
    ),
    "after an end": WhyNot("follows", "it lost or awaited a process that had ended at {line}"),
    "asked to end": WhyNot("follows", "its process had been asked to end at {line}"),
    # the root has the better place in the order
    "a wait": WhyNot("follows", "it only waited for another process, and {line} names a cause"),
    "a summary": WhyNot("follows", "it only sums up how a process ended, and {line} names a cause"),
    "a consequence": WhyNot("follows", "it only follows from a failure, and {line} names a cause"),
    "an announcement": WhyNot(
        "follows", "it only announces the exception below it, and {line} names a cause"
    ),
    "watchdog tells more": WhyNot(
        "general", "the watchdog's report at {line} tells more about the same wait"
    ),
    "less specific": WhyNot(
        "general", "its rule knows only that something failed, and the rule of {line} knows what"
    ),
    "no kind": WhyNot("kindless", "it names no kind of failure, and {line} does"),
    "no end": WhyNot("endless", "it does not say how a process ended, and {line} does"),
    "later": WhyNot("place", "it stands after {line}"),
    "same time": WhyNot("place", "its time is that of {line}, whose place comes first"),
    "same line": WhyNot("untyped", "another rule knows more about the same line"),
    # another line tells the same failure better
    "told in full": WhyNot("told", "{line} tells the same failure in full"),
    "outer entry": WhyNot("told", "it is an outer entry of the error stack whose innermost one is {line}"),
    "process left": WhyNot("told", "a process had ended its part before, at {line}"),
    "process failed": WhyNot("told", "a process had failed before, at {line}"),
    "port fell": WhyNot("told", "a port of the fabric had failed before, at {line}"),
    "explained": WhyNot("told", "it shows only that the run ended; {line} tells why"),
    "service away": WhyNot("told", "{line} tells what the service answered"),
    "a build": WhyNot("told", "it says only that a build failed; {line} says what it lacks"),
    "no card": WhyNot("told", "it only misses a card; CUDA says at {line} why it did not start"),
    "NCCL's own word": WhyNot("told", "NCCL's own warning at {line} tells why"),
    # no line is the root
    "closing": WhyNot("none", "the job had reported its success, and this comes from its closing"),
    "success": WhyNot("none", "the job ended with success"),
    "scheduler tells more": WhyNot("none", "the scheduler's record tells more than the line"),
    "hang": WhyNot("none", "it reports a hang; the root is the last line of progress before it"),
}
