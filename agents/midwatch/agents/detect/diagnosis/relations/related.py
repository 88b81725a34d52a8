"""All relations of one line to the lines beside it, in the order in which they are asked. Pure.

Each names a mechanism. The order among the candidates is in `root_line`.
"""

from __future__ import annotations

from midwatch.agents.detect.diagnosis.candidates import RootCandidate
from midwatch.agents.detect.diagnosis.relations.broken_cards import raised_by_a_broken_card, said_days_before
from midwatch.agents.detect.diagnosis.relations.closing import (
    aborted_by_its_report,
    aborted_in_a_loader,
    crashed_while_shut_down,
    links_were_closed,
    only_torn_down,
    server_closed_on_request,
    thrown_by_a_destructor,
    thrown_while_ending,
)
from midwatch.agents.detect.diagnosis.relations.failed_builds import misses_a_failed_build
from midwatch.agents.detect.diagnosis.relations.handled import (
    asked_for_itself,
    got_over,
    module_done_without,
    port_left_alone,
    transport_given_up,
    went_another_way,
)
from midwatch.agents.detect.diagnosis.relations.notices import (
    ended_by_the_agent,
    evicted_by_its_removal,
    killed_by_the_agent,
    of_a_failing_node,
    seen_by_the_parent,
    signalled_by_the_scheduler,
    step_of_a_failed_process,
    stray_behind_a_failure,
)
from midwatch.agents.detect.diagnosis.relations.outlived import (
    another_program_since,
    script_went_on,
    thread_of_a_job_taken_away,
)
from midwatch.agents.detect.diagnosis.relations.surroundings import Relation, Surroundings
from midwatch.agents.detect.diagnosis.relations.waits import (
    broken_by_the_watchdog,
    interrupted_before_others_waited,
    raised_by_the_wait,
    taken_down_for_a_reason,
    waited_beside_one_that_worked,
)
from midwatch.streams.records import Hit

RELATIONS: tuple[Relation, ...] = (
    asked_for_itself,
    went_another_way,
    port_left_alone,
    transport_given_up,
    only_torn_down,
    server_closed_on_request,
    taken_down_for_a_reason,
    broken_by_the_watchdog,
    raised_by_the_wait,
    seen_by_the_parent,
    misses_a_failed_build,
    signalled_by_the_scheduler,
    step_of_a_failed_process,
    of_a_failing_node,
    evicted_by_its_removal,
    raised_by_a_broken_card,
    said_days_before,
    thread_of_a_job_taken_away,
    links_were_closed,
    aborted_in_a_loader,
    crashed_while_shut_down,
    thrown_by_a_destructor,
    thrown_while_ending,
    aborted_by_its_report,
    waited_beside_one_that_worked,
    interrupted_before_others_waited,
    another_program_since,
    script_went_on,
    killed_by_the_agent,
    ended_by_the_agent,
    stray_behind_a_failure,
    got_over,
    module_done_without,
)


def related(around: Surroundings) -> list[RootCandidate]:
    """The candidates, each as its first relation leaves it. A hit of role "context" is no candidate."""
    return [_first(hit, around) for hit in around.hits]


def _first(hit: Hit, around: Surroundings) -> RootCandidate:
    for relation in RELATIONS:
        changed = relation(hit, around)
        if changed is not None:
            return changed
    return RootCandidate(hit)
