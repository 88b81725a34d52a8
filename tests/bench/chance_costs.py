"""What each policy would have cost on labelled ends, in GPU-hours that were avoidable. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from midwatch.agents.policies import choose
from midwatch.agents.policies.base import Clause, ClauseKind, Costs, Policy, PolicyMode
from midwatch.agents.policies.conditions import Past
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.replay.scoring import Labelled
from midwatch.streams.records import Incident, Verdict

_RESTARTS = 3
_HOUR = 3600.0

ABOUT = """
What the policies would have cost on all {logs} logs, in GPU-hours. A restart that the label does not call for
costs a wasted start, and again for each further restart that the policy grants while the same end comes back,
at most {restarts}. No restart where the label calls for one costs the wait until somebody looks. All else
costs nothing here: it cannot be avoided, or is the same for all. `expected_cost` is told the costs of its
row, has its margin of 3, and judges each log by the counts of all other repositories. In brackets: the logs
whose label takes no other action.
"""


@dataclass(frozen=True, slots=True)
class CostCase:
    """One row: GPUs of the job, seconds until a person looks, and seconds of a wasted start."""

    gpus: int
    waiting: float
    wasted_start: float

    @property
    def name(self) -> str:
        """The row's first cell."""
        waiting, start = _span(self.waiting), _span(self.wasted_start)
        return f"{self.gpus} GPUs, {waiting} until somebody looks, {start} a wasted start"


CASES = (
    CostCase(8, 6 * _HOUR, _HOUR / 3),
    CostCase(64, 6 * _HOUR, _HOUR / 3),
    CostCase(64, 6 * _HOUR, 2 * _HOUR),
    CostCase(64, _HOUR, _HOUR),
)


@dataclass(frozen=True, slots=True)
class CostedLog:
    """A label and the verdict that the policies judge."""

    row: Labelled
    verdict: Verdict


def policies_for(case: CostCase) -> Mapping[str, Policy]:
    """The policies of the table. `expected_cost` weighs the costs of the case."""
    shipped = load_policy("expected_cost")
    costs = Costs(case.waiting, case.wasted_start)
    told = {
        mode: replace(clause, costs=costs) if clause.kind == ClauseKind.EXPECTED_COST else clause
        for mode, clause in shipped.clauses.items()
    }
    ends = (PolicyMode.CRASH, PolicyMode.STALL, PolicyMode.TIMEOUT)
    always = {mode: Clause(ClauseKind.ALWAYS, _RESTARTS) for mode in ends}
    return {
        "`expected_cost`": replace(shipped, clauses=told),
        "`verdict`": load_policy("verdict"),
        "restart always": Policy("always", always),
        "stop always": Policy("never"),
    }


def gpu_hours(policy: Policy, log: CostedLog, case: CostCase) -> float:
    """What the policy costs on this log."""
    restarts = _restarts(policy, log.verdict)
    if log.row.right_action == "restart":
        return 0.0 if restarts else case.gpus * case.waiting / _HOUR
    return case.gpus * restarts * case.wasted_start / _HOUR


def _restarts(policy: Policy, verdict: Verdict) -> int:
    """How often the policy starts the job again if each start ends in the same way."""
    if verdict.state != "failed":
        return 0
    incident = Incident("i", "replay:file/log", 1, "file", "settled", 1, verdict, words=("scheduler",))
    for restarts in range(_RESTARTS):
        clause, choice = choose(policy, incident, Past(restarts, in_vain=restarts))
        spent = clause.max_restarts is not None and restarts >= clause.max_restarts
        if choice.action != "restart" or spent:
            return restarts
    return _RESTARTS


def cost_table(logs: Sequence[CostedLog]) -> Iterator[str]:
    """The text and the lines of the table."""
    yield ABOUT.format(logs=len(logs), restarts=_RESTARTS)
    names = list(policies_for(CASES[0]))
    yield f"| costs | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    clear, cheaper = [log for log in logs if not log.row.also_action], [0, 0]
    for case in CASES:
        policies = policies_for(case).values()
        sums = [[_sum(policy, each, case) for policy in policies] for each in (logs, clear)]
        cells = [f"{every:,.0f} ({sure:,.0f})" for every, sure in zip(*sums, strict=True)]
        yield f"| {case.name} | {' | '.join(cells)} |"
        cheaper = [count + (row[0] < row[1]) for count, row in zip(cheaper, sums, strict=True)]
    yield ""
    every, sure = (f"{count} of {len(CASES)} rows" for count in cheaper)
    yield f"`expected_cost` costs less than `verdict` in {every}, and by the clear labels in {sure}."


def _sum(policy: Policy, logs: Sequence[CostedLog], case: CostCase) -> float:
    return sum(gpu_hours(policy, log, case) for log in logs)


def _span(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds < _HOUR else f"{seconds / _HOUR:g} h"
