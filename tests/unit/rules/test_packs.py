"""The shipped packs: each rule with its examples and its source, none of them upset by healthy logs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from midwatch.rules.files.rule_reader import read_rules
from midwatch.rules.loader import shipped_files
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.model import Role, Rule

FAMILIES = """
oom host_oom
nccl nccl_timeout distributed_timeout communication watchdog_timeout desync rendezvous port_in_use
hang deadlock straggler
numerical_instability loss_spike
exception native_crash torch config import_error data checkpoint
hardware storage slurm_failure ray_actor_died ray_node_died
cancelled preemption user_interrupt timeout
"""
ERROR_TYPES = frozenset(FAMILIES.split())


@pytest.fixture(scope="module")
def rules() -> tuple[Rule, ...]:
    return read_rules(shipped_files())


@pytest.fixture(scope="module")
def rule_set(rules: tuple[Rule, ...]) -> RuleSet:
    return compile_rules(rules, scan=False)


def found(rule_set: RuleSet, line: str) -> dict[str, Rule]:
    return {match.rule.name: match.rule for match in rule_set.match_line(line.encode())}


def captured(rule_set: RuleSet, name: str, line: str) -> dict[str, str]:
    (match,) = [match for match in rule_set.match_line(line.encode()) if match.rule.name == name]
    return match.captures()


def test_every_rule_has_two_examples_one_look_alike_and_a_source(rules: tuple[Rule, ...]) -> None:
    poor = [r.name for r in rules if len(r.match) < 2 or not r.no_match or not r.source]
    assert poor == []


def test_every_error_type_is_one_that_diagnosis_knows(rules: tuple[Rule, ...]) -> None:
    assert {r.error_type for r in rules} - ERROR_TYPES <= {""}


def test_causes_and_consequences_say_what_to_do(rules: tuple[Rule, ...]) -> None:
    telling = (Role.CAUSE, Role.CONSEQUENCE)
    assert [r.name for r in rules if r.role in telling and not r.remedy] == []


def test_no_pattern_holds_an_identifier_of_one_excerpt(rules: tuple[Rule, ...]) -> None:
    """No address, home, host, job or long number: but the error codes that a vendor documents."""
    own = re.compile(
        r"\d+\\?\.\d+\\?\.\d+\\?\.\d+|/home/|/users/|/mnt/|/scratch|\bjob_?\d{3,}|[0-9a-f]{12,}"
        r"|\b(?:node|gpu|host|rank|worker)-?\d{2,}|pid=\d",
        re.IGNORECASE,
    )
    assert [r.name for r in rules if own.search(r.pattern)] == []
    documented = re.compile(
        r"\b(?:107002|2070\d\d|207004|0000005|5070\d\d|507899|507901"
        r"|32212\d{5}|10737\d{5}|0000(?:135|139)|00001|50001)\b"
    )
    long = {number for r in rules for number in re.findall(r"\d{5,}", r.pattern)}
    assert {number for number in long if not documented.match(number)} == set()


def test_healthy_logs_show_no_cause(rule_set: RuleSet, healthy_logs: list[Path]) -> None:
    causes = [
        (path.name, match.line_number, match.rule.name)
        for path in healthy_logs
        for match in rule_set.match_chunk(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
        if match.rule.role is Role.CAUSE
    ]
    assert causes == []


@pytest.mark.capability("S001-02", "S001-29", "S002-02")
def test_a_megatron_iteration_line_gives_its_numbers(rule_set: RuleSet) -> None:
    line = (
        " [2026-03-02 11:40:09] iteration        7/     120 | consumed samples:          448 |"
        " elapsed time per iteration (ms): 95.0 | learning rate: 3.000000E-04 | global batch size:    64 |"
        " lm loss: 1.031902E+01 | loss scale: 4096.0 | grad norm: 0.731 |"
        " number of skipped iterations:   2 | number of nan iterations:   0 |"
    )
    assert captured(rule_set, "megatron_iteration", line) == {
        "step": "7",
        "total_steps": "120",
        "iteration_ms": "95.0",
        "learning_rate": "3.000000E-04",
        "loss": "1.031902E+01",
        "loss_scale": "4096.0",
        "grad_norm": "0.731",
        "skipped": "2",
        "nan": "0",
    }
    assert {rule.role for rule in found(rule_set, line).values()} == {Role.PROGRESS}


@pytest.mark.capability("S002-03")
@pytest.mark.parametrize(
    ("name", "line", "throughput"),
    [
        (
            "megatron_iteration",
            " iteration 7/ 120 | consumed samples: 448 | elapsed time per iteration (ms): 95.0 |"
            " throughput per GPU (TFLOP/s/GPU): 311.2 | learning rate: 3.0E-04 | lm loss: 1.03E+01 |",
            {"tflops": "311.2"},
        ),
        (
            "maxtext_step",
            "completed step: 40, seconds: 1.204, TFLOP/s/device: 180.1, Tokens/s/device: 9100.1, loss: 7.1",
            {"tflops": "180.1", "tokens_per_second": "9100.1"},
        ),
        (
            "deepspeed_interval",
            "steps: 40 loss: 8.1234 iter time (s): 1.204 samples/sec: 12.1",
            {"samples_per_second": "12.1"},
        ),
        (
            "mxnet_speed",
            "Epoch[3] Batch [100]\tSpeed: 88.10 samples/sec\tloss=0.9",
            {"samples_per_second": "88.10"},
        ),
    ],
)
def test_a_progress_line_gives_its_throughput(
    rule_set: RuleSet, name: str, line: str, throughput: dict[str, str]
) -> None:
    got = captured(rule_set, name, line)
    assert {key: got[key] for key in throughput} == throughput


@pytest.mark.capability("S002-12")
def test_the_fabric_that_nccl_took_is_told_from_one_that_is_only_there(rule_set: RuleSet) -> None:
    used = captured(rule_set, "nccl_fast_fabric", "n4:1:2 [0] NCCL INFO NET/OFI Selected Provider is efa")
    assert used == {"fabric": "efa"}
    taken = captured(rule_set, "nccl_fast_fabric", "n4:1:2 [0] NCCL INFO Using network AWS Libfabric")
    assert taken == {"fabric": "AWS Libfabric"}
    there = "n4:1:2 [0] NCCL INFO NET/OFI Setting FI_EFA_FORK_SAFE environment variable to 1"
    assert "nccl_fast_fabric" not in found(rule_set, there)
    socket = found(rule_set, "n4:1:2 [0] NCCL INFO Using network Socket")
    assert set(socket) == {"nccl_tcp_fallback"}


def test_a_nan_run_prints_no_loss_and_is_seen_by_its_gradient(rule_set: RuleSet) -> None:
    line = (
        " iteration       80/     120 | consumed samples: 5120 | elapsed time per iteration (ms): 95.0 |"
        " learning rate: 3.0E-04 | global batch size:    64 | loss scale: 1.0 | grad norm: nan |"
        " number of skipped iterations:   0 | number of nan iterations:   0 |"
    )
    assert "loss" not in captured(rule_set, "megatron_iteration", line)
    assert found(rule_set, line)["megatron_loss_not_finite"].error_type == "numerical_instability"


@pytest.mark.capability("S000-08", "S001-29", "S001-56")
@pytest.mark.parametrize(
    ("line", "quantities"),
    [
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total"
            " capacity of 79.11 GiB of which 1.02 GiB is free.",
            {"size": "2.50 GiB", "local_device": "3", "capacity": "79.11 GiB", "free": "1.02 GiB"},
        ),
        (
            "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 15.78 GiB total capacity;"
            " 14.01 GiB already allocated; 9.75 MiB free; 14.40 GiB reserved in total by PyTorch)",
            {"size": "20.00 MiB", "local_device": "1", "capacity": "15.78 GiB"},
        ),
    ],
)
def test_an_out_of_memory_line_gives_its_quantities(
    rule_set: RuleSet, line: str, quantities: dict[str, str]
) -> None:
    got = captured(rule_set, "cuda_out_of_memory", line)
    assert {key: got[key] for key in quantities} == quantities
    rule = found(rule_set, line)["cuda_out_of_memory"]
    assert (rule.role, rule.error_type, rule.transient) == (Role.CAUSE, "oom", False)


@pytest.mark.capability("S001-60")
def test_a_watchdog_timeout_is_a_consequence_with_the_waiting_rank(rule_set: RuleSet) -> None:
    line = (
        "[rank3]:[E302 11:52:40.118290733 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective"
        " operation timeout: WorkNCCL(SeqNum=48, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024,"
        " Timeout(ms)=30000) ran for 30041 milliseconds before timing out."
    )
    rule = found(rule_set, line)["torch_watchdog_timeout"]
    assert (rule.role, rule.error_type, rule.transient) == (Role.CONSEQUENCE, "nccl_timeout", True)
    got = captured(rule_set, "torch_watchdog_timeout", line)
    assert got == {"rank": "3", "sequence": "48", "collective": "ALLREDUCE"}


def test_a_fallback_never_stands_alone_where_a_specific_rule_exists(
    rules: tuple[Rule, ...], rule_set: RuleSet
) -> None:
    for rule in rules:
        if rule.fallback:
            continue
        for line in rule.match:
            names = found(rule_set, line)
            assert any(not other.fallback for other in names.values()), (rule.name, line)
