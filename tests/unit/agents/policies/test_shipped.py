"""The policies that ship: what each restarts after a crash, a stall and a timeout, and how often."""

from __future__ import annotations

import pytest

from midwatch.agents.policies import choose
from midwatch.agents.policies.base import Policy, PolicyMode
from midwatch.agents.policies.loader import load_policy, shipped_policies
from midwatch.streams.records import Mode
from unit.agents.policies.incidents import hit, incident

PASSES = (
    "hang",
    "deadlock",
    "nccl",
    "nccl_timeout",
    "distributed_timeout",
    "communication",
    "watchdog_timeout",
)
LASTS = ("oom", "exception", "numerical_instability")


def restarted(policy: Policy, *error_types: str, mode: Mode = "crash") -> set[str]:
    """Those of the types after which this policy would start the job again."""
    return {
        kind
        for kind in error_types
        if choose(policy, incident(hit("x", kind), mode=mode), None)[1].action == "restart"
    }


def limits(policy: Policy) -> dict[str, int | None]:
    return {mode.value: clause.max_restarts for mode, clause in policy.clauses.items()}


@pytest.mark.capability("S001-09")
def test_default_restarts_after_every_crash_and_stall_and_never_after_a_success() -> None:
    policy = load_policy("default")
    assert limits(policy) == {"crash": 2, "stall": 3}
    assert restarted(policy, *PASSES, *LASTS) == {*PASSES, *LASTS}
    assert restarted(policy, "hang", mode="stall") == {"hang"}
    assert restarted(policy, "", mode="success") == set()


@pytest.mark.capability("S001-10")
def test_transient_restarts_what_passes_by_itself_and_nothing_that_lasts() -> None:
    policy = load_policy("megatron_transient")
    assert limits(policy) == {"crash": 3, "stall": 2, "timeout": 1}
    assert restarted(policy, *PASSES, *LASTS) == {*PASSES}
    assert restarted(policy, "hang", mode="stall") == {"hang"}
    assert restarted(policy, "timeout", mode="timeout") == {"timeout"}


@pytest.mark.capability("S001-10")
@pytest.mark.parametrize("error_type", [*LASTS, "torch"])
@pytest.mark.parametrize("rule", ["nccl_error", "x"])
def test_transient_never_restarts_what_lasts_though_its_place_or_rule_is_on_a_list(
    error_type: str, rule: str
) -> None:
    seen = incident(hit(rule, error_type, subsystem="distributed"))
    _, choice = choose(load_policy("megatron_transient"), seen, None)
    assert (choice.action, choice.reason) == ("stop", f"{error_type} is excluded from restarts")


@pytest.mark.capability("S001-11")
def test_aggressive_restarts_all_but_memory_and_code() -> None:
    policy = load_policy("megatron_aggressive")
    assert limits(policy) == {"crash": 5, "stall": 3, "timeout": 2}
    others = (*PASSES, "numerical_instability", "torch", "never_heard_of")
    assert restarted(policy, *others, "oom", "exception", "import_error") == {*others}


@pytest.mark.capability("S001-12")
def test_conservative_restarts_clear_network_trouble_and_hangs_alone() -> None:
    policy = load_policy("megatron_conservative")
    assert limits(policy) == {"crash": 2, "stall": 1}
    clear = {"hang", "nccl_timeout", "distributed_timeout", "watchdog_timeout"}
    assert restarted(policy, *PASSES, *LASTS, "torch", "never_heard_of") == clear
    assert str(policy.clause("timeout").kind) == "never"
    assert restarted(policy, "timeout", mode="timeout") == set()
    assert PolicyMode.TIMEOUT not in policy.clauses


@pytest.mark.capability("S001-10", "S001-43")
def test_transient_stops_where_nothing_says_that_it_passes() -> None:
    """It restarts on transient errors only: what no list names may as well last."""
    policy = load_policy("megatron_transient")
    passes = ("preemption", "cancelled", "slurm_failure", "hardware", "ray_node_died", "rendezvous")
    lasts = ("host_oom", "config", "data", "torch", "checkpoint", "storage", "loss_spike", "never_heard_of")
    assert restarted(policy, *passes, *lasts) == {*passes}


@pytest.mark.capability("S001-84")
@pytest.mark.parametrize("name", shipped_policies())
def test_no_policy_starts_a_success_again_and_none_restarts_without_a_bound(name: str) -> None:
    clauses = load_policy(name).clauses
    assert PolicyMode.SUCCESS not in clauses
    assert all(clause.max_restarts for clause in clauses.values())


@pytest.mark.capability("S001-80")
def test_each_mode_has_a_budget_of_its_own() -> None:
    clauses = [clause for name in shipped_policies() for clause in load_policy(name).clauses.values()]
    assert not any(clause.across_modes for clause in clauses)
