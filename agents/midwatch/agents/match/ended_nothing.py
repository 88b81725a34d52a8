"""What the text around a failure's line tells: that it ended nothing. Each mechanism has a module. Pure."""

from __future__ import annotations

from midwatch.agents.match.failed_items import is_of_a_failed_item
from midwatch.agents.match.parts_of_the_loss import is_only_a_part
from midwatch.agents.match.polled_servers import is_a_poll
from midwatch.agents.match.queued_starts import is_of_a_queued_start
from midwatch.agents.match.recovered_trials import is_recovered
from midwatch.agents.match.retried_errors import is_retried
from midwatch.agents.match.runs_again import runs_again
from midwatch.agents.match.shell_traces import is_captured
from midwatch.agents.match.specific_rows import ANY_EXCEPTION
from midwatch.rules.matching.hits import Match
from midwatch.rules.model import Role, Rule
from midwatch.streams.lines.log_levels import was_left_out

_BROKEN_NUMBERS = "numerical_instability"


def ended_nothing(text: bytes, hit: Match) -> bool:
    """Whether the program went on after the line of a hit in `text`, by what the lines around it say.

    - A script took what the command printed, failed or not.
    - A loop left the batch out, or tried a smaller one; a study took the next trial, a list the next item.
    - A scheduler ran the same process again, or a client the same request. A script polled its own server.
    - A start was cancelled in the queue, and another one goes on.
    - Only a named part of the loss is no number.
    """
    if _is_bare_end(hit.rule) and is_captured(text, hit.start):
        return True
    if hit.rule.error_type == _BROKEN_NUMBERS:
        if is_only_a_part(hit.line):
            return True
    elif is_of_a_failed_item(text, hit.start, hit.end) or is_a_poll(text, hit.start, hit.end):
        return True
    if was_left_out(text, hit.end) or is_recovered(text, hit.start, hit.end):
        return True
    if is_of_a_queued_start(text, hit.start, hit.end):
        return True
    return runs_again(text, hit) or is_retried(text, hit.start, hit.end)


def _is_bare_end(rule: Rule) -> bool:
    """Whether the rule knows only that some command failed."""
    return rule.fallback and rule.role is Role.CONSEQUENCE and rule.error_type == ANY_EXCEPTION
