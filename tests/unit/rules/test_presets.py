"""The presets of oellm-autoexp, by name, without the faults that were measured in the original."""

from __future__ import annotations

from functools import cache

import pytest

from midwatch.rules.loader import load_bundle
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.model import Bundle, Phase, Role, Rule

PRESETS = (
    "megatron_basic",
    "megatron_nccl",
    "megatron_stall_detection",
    "megatron_production",
    "megatron_checkpoint_eval",
)

HEALTHY = (
    b" iteration      230/  500000 | consumed samples:       117760 | elapsed time per iteration (ms): 1270.5"
    b" | learning rate: 2.000E-05 | global batch size:   512 | lm loss: 2.380000E+00 | loss scale: 1.0 |"
    b" grad norm: 0.412 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)


@cache
def bundle(name: str) -> Bundle:
    return load_bundle(name)


@cache
def rule_set(name: str) -> RuleSet:
    return compile_rules(bundle(name).rules, scan=False)


def failures(name: str, line: bytes) -> list[Rule]:
    """Causes and consequences in a line, without the fallbacks that a specific rule silences."""
    rules = [match.rule for match in rule_set(name).match_line(line)]
    found = [rule for rule in rules if rule.role in (Role.CAUSE, Role.CONSEQUENCE)]
    specific = [rule for rule in found if not rule.fallback]
    return specific or found


@pytest.mark.parametrize("name", PRESETS)
def test_a_healthy_megatron_line_is_progress_and_nothing_else(name: str) -> None:
    """Fault 1 of the original: the field `number of nan iterations:   0` stopped the watch."""
    assert {match.rule.role for match in rule_set(name).match_line(HEALTHY)} == {Role.PROGRESS}


@pytest.mark.capability("S001-60")
def test_a_timeout_of_eight_ranks_and_its_traceback_are_one_type_and_all_consequences() -> None:
    """Fault 2: eight ranks' lines were eight restarts; here all say that they are consequences."""
    lines = [
        b"[rank%d]:[E302 11:52:40.1 ProcessGroupNCCL.cpp:632] [Rank %d] Watchdog caught collective operation"
        b" timeout: WorkNCCL(SeqNum=48, OpType=ALLREDUCE) ran for 30041 milliseconds before timing out."
        % (rank, rank)
        for rank in range(8)
    ]
    for line in lines:
        found = failures("megatron_production", line)
        assert {(rule.role, rule.error_type) for rule in found} == {(Role.CONSEQUENCE, "nccl_timeout")}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("megatron_nccl", marks=pytest.mark.capability("S001-04")),
        pytest.param("megatron_stall_detection", marks=pytest.mark.capability("S001-05")),
        pytest.param("megatron_production", marks=pytest.mark.capability("S001-06")),
    ],
)
def test_a_preset_that_extends_basic_keeps_all_of_basic(name: str) -> None:
    """Fault 5: the list of the extending preset replaced the list that it extended."""
    basic = {rule.name for rule in bundle("megatron_basic").rules}
    assert basic <= {rule.name for rule in bundle(name).rules}


@pytest.mark.capability("S001-02", "S001-03")
def test_basic_has_the_progress_rule_that_it_promises() -> None:
    """Fault 5, continued."""
    (found,) = rule_set("megatron_basic").match_line(HEALTHY)
    captures = found.captures()
    assert (found.rule.role, found.rule.phase) == (Role.PROGRESS, Phase.TRAINING)
    assert (captures["step"], captures["total_steps"]) == ("230", "500000")
    assert captures["loss"] == "2.380000E+00"


BASIC = {
    "[after training is done] datetime: 2026-03-02 12:00:00": ("success", ""),
    " validation loss at iteration 40 | lm loss value: 2.1E+00 | lm loss PPL: 8.2E+00 |": ("progress", ""),
    "  successfully saved checkpoint from iteration      40 to /c": ("progress", ""),
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.": ("cause", "oom"),
    "RuntimeError: CUDA error: device-side assert triggered": ("cause", "torch"),
    "ValueError: the batch is empty": ("cause", "exception"),
}
COLLECTIVES = {
    "n4:88:90 [0] misc/socket.cc:58 NCCL WARN odd value": ("context", "nccl"),
    "n4:88:90 [0] NCCL WARN Connect to 10.0.0.9<4000> failed : No route to host": ("cause", "communication"),
    "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, internal error": (
        "consequence",
        "nccl",
    ),
    "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE)": (
        "consequence",
        "nccl_timeout",
    ),
    "[rank1]: Collective WorkNCCL(SeqNum=3) raised the following async exception: NCCL error: remote process"
    " exited or there was a network error": ("consequence", "nccl"),
}
HANGS = {
    "RuntimeError: Detected a deadlock between ranks 0 and 3": ("cause", "deadlock"),
    "RuntimeError: CUDA error: the launch timed out and was terminated": ("cause", "torch"),
    "RuntimeError: Timed out initializing process group in store based barrier on rank: 1": (
        "consequence",
        "distributed_timeout",
    ),
}
SAID_PLAINLY = {
    "n4:88:90 [0] NCCL ERROR toy": ("consequence", "nccl"),
    "RuntimeError: all_reduce failed": ("consequence", "nccl"),
    "RuntimeError: CUDA hang detected on rank 3": ("cause", "hang"),
    "RuntimeError: deadlock detected": ("cause", "deadlock"),
}
NUMBERS = {
    "step 5: loss: nan": ("cause", "numerical_instability"),
    "RuntimeError: found NaN in local grad norm in backward pass": ("cause", "numerical_instability"),
}
KILLED = {
    "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.": ("cause", "host_oom"),
    "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-03-02T12:00:01 DUE TO PREEMPTION ***": (
        "cause",
        "preemption",
    ),
}


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        pytest.param(
            "megatron_basic", BASIC, marks=pytest.mark.capability("S001-03", "S001-81"), id="megatron_basic"
        ),
        pytest.param(
            "megatron_nccl",
            BASIC | COLLECTIVES,
            marks=pytest.mark.capability("S001-04", "S001-70", "S001-81"),
            id="megatron_nccl",
        ),
        pytest.param(
            "megatron_stall_detection",
            BASIC | COLLECTIVES | HANGS | NUMBERS | SAID_PLAINLY,
            marks=pytest.mark.capability("S001-05", "S001-81"),
            id="megatron_stall_detection",
        ),
        pytest.param(
            "megatron_production",
            BASIC | COLLECTIVES | HANGS | NUMBERS | KILLED | SAID_PLAINLY,
            marks=pytest.mark.capability("S001-06", "S001-81"),
            id="megatron_production",
        ),
    ],
)
def test_a_preset_is_chosen_by_its_name_and_finds_what_it_is_for(
    name: str, lines: dict[str, tuple[str, str]]
) -> None:
    found = {
        line: {
            (str(match.rule.role), match.rule.error_type)
            for match in rule_set(name).match_line(line.encode())
        }
        for line in lines
    }
    assert [line for line, told in lines.items() if told not in found[line]] == []


def test_what_nccl_warns_of_is_not_looked_for_by_basic() -> None:
    assert not any(rule_set("megatron_basic").match_line(line.encode()) for line in list(COLLECTIVES)[:2])


@pytest.mark.capability("S001-63")
def test_production_knows_the_watchdog_s_own_timeout() -> None:
    """Fault 5, continued: watchdog_timeout was missing."""
    line = b"[PG 0 Rank 6] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress"
    assert [rule.error_type for rule in failures("megatron_production", line)] == ["watchdog_timeout"]


@pytest.mark.capability("S001-56")
@pytest.mark.parametrize("name", PRESETS)
def test_one_out_of_memory_line_is_one_signal(name: str) -> None:
    """Fault 6: one such line fired three signals."""
    line = (
        b"[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
        b" capacity of 79.10 GiB of which 1.50 GiB is free."
    )
    found = failures(name, line)
    assert [(rule.name, rule.transient) for rule in found] == [("cuda_out_of_memory", False)]


@pytest.mark.parametrize(
    ("line", "error_type"),
    [
        (
            b"slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-03-02T12:00:01 DUE TO PREEMPTION ***",
            "preemption",
        ),
        pytest.param(
            b"slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-03-02T12:00:01 DUE TO TIME LIMIT ***",
            "slurm_failure",
            marks=pytest.mark.capability("S001-65"),
            id="time limit",
        ),
        pytest.param(
            b"slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-03-02T12:00:01 ***",
            "cancelled",
            marks=pytest.mark.capability("S001-64"),
            id="cancelled",
        ),
        pytest.param(
            b"torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, unhandled system error",
            "nccl",
            marks=pytest.mark.capability("S001-59"),
            id="nccl",
        ),
    ],
)
def test_lines_that_matched_nothing_are_known(line: bytes, error_type: str) -> None:
    """Fault 6, continued."""
    assert [rule.error_type for rule in failures("megatron_production", line)] == [error_type]


@pytest.mark.capability("S001-05", "S001-33")
def test_silence_limits_are_those_of_the_seed_and_a_long_evaluation_has_its_own() -> None:
    assert set(bundle("megatron_stall_detection").silence.values()) == {900.0}
    production = bundle("megatron_production").silence
    assert production[Phase.TRAINING] == 1200.0
    assert production[Phase.EVALUATION] > production[Phase.TRAINING]


def test_no_pattern_of_the_presets_needs_what_re2_lacks() -> None:
    """Fault 7: one pattern of the original was a look-behind."""
    for name in PRESETS:
        assert len(rule_set(name).rules) == len(bundle(name).rules) > 0


@pytest.mark.parametrize("name", PRESETS)
def test_checkpoints_and_validation_are_signs_of_life_in_every_preset(name: str) -> None:
    for line in (
        b"  successfully saved checkpoint from iteration      500 to /ckpt/toy",
        b" validation loss at iteration 500 | lm loss value: 2.514300E+00 | lm loss PPL: 1.2E+01 | ",
    ):
        assert Role.PROGRESS in {match.rule.role for match in rule_set(name).match_line(line)}


def test_a_complete_checkpoint_is_named_for_its_evaluation() -> None:
    line = b"  successfully saved checkpoint from iteration      500 to /ckpt/toy"
    found = {match.rule.name: match for match in rule_set("megatron_checkpoint_eval").match_line(line)}
    ready = found["checkpoint_ready_for_evaluation"]
    assert (ready.captures()["checkpoint_step"], ready.captures()["path"]) == ("500", "/ckpt/toy")
    assert ready.rule.metadata["trigger"] == "evaluation"
