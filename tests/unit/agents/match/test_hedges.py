"""A supposition is told from a report by the words before it."""

from __future__ import annotations

import pytest

from midwatch.agents.match.hedges import supposes
from unit.agents.conftest import Watch


@pytest.mark.parametrize(
    "before",
    [
        b"This can happen if the node ",
        b"The worker may have exceeded ",
        b"it might be caused by an ",
        b"whether the card ",
        b'If you see "',
        b"possibly ",
    ],
)
def test_words_of_doubt_suppose(before: bytes) -> None:
    assert supposes(before)


@pytest.mark.parametrize(
    "before",
    [
        b"",
        b"The node ",
        b"It appears as if there is not enough space, ",
        b"if it comes again, ask: ",
        b"May 3 10:00:00 n4 kernel: ",
        b"if not ",
    ],
)
def test_a_report_supposes_nothing(before: bytes) -> None:
    assert not supposes(before)


def test_a_supposed_cause_is_not_the_root(watch: Watch) -> None:
    done = watch(
        "(raylet) Task toy failed because the node it was running on is dead or unavailable.\n"
        "This can happen if the instance was preempted, had a hardware failure, or its raylet crashed.\n"
    )
    assert done.verdict.error_type == "ray_node_died"


def test_the_same_words_as_a_report_are_the_root(watch: Watch) -> None:
    assert watch("The instance was preempted at 10:00\n").verdict.error_type == "preemption"


@pytest.mark.parametrize("front", ["", "+ ", "export ", "0: "])
def test_the_value_of_a_variable_is_no_report(watch: Watch, front: str) -> None:
    told = (
        "System has unsupported display driver / cuda driver combination (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)"
    )
    assert watch(f"the toy starts\n{front}_TOY_STATUS={told} cuInit()=803\n").verdict.state == "unknown"
    assert watch(f"the toy starts\nRuntimeError: {told}\n").verdict.error_type == "config"


def test_words_in_backticks_are_no_report_though_the_rule_captures_what_follows(watch: Watch) -> None:
    guide = "If you get `CUDA error: invalid device function` errors, keep one of ['toy.so', 'toy.so.7']"
    assert watch(f"{guide}\nthe toy is loaded\n").verdict.state == "unknown"
    assert (
        watch("FatalError: `Termination signal` is detected by the operating system.\n").verdict.state
        == "failed"
    )
