"""What the runtimes of accelerators and the launchers say of an end; each beside its kin."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_cascades import frames

STEPS = "Epoch 3 step 40/900 loss 2.31\nEpoch 3 step 50/900 loss 2.30\n"
MORE = "Epoch 3 step 60/900 loss 2.29\nEpoch 3 step 70/900 loss 2.29\nEpoch 3 step 80/900 loss 2.28\n"
CLOSING = "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 4187 closing signal"


@pytest.mark.parametrize(
    ("last", "error_type", "action"),
    [
        (f"{CLOSING} SIGHUP", "cancelled", "restart"),
        (f"{CLOSING} SIGINT", "user_interrupt", "hold"),
    ],
)
def test_the_word_of_a_runtime_or_launcher_tells_the_end(
    watch: Watch, last: str, error_type: str, action: str
) -> None:
    done = watch(f"{STEPS}{last}\n")
    assert (done.verdict.error_type, done.decision.action) == (error_type, action)
    assert done.verdict.root_line.strip() == last.splitlines()[-1].strip()


@pytest.mark.parametrize("line", ["signal SIGHUP is kept"])
def test_kin_of_such_words_are_no_failure(watch: Watch, line: str) -> None:
    assert watch(f"{STEPS}{line}\n{MORE}").verdict.state != "failed"


def test_a_launcher_that_ends_the_others_itself_was_not_cancelled(watch: Watch) -> None:
    """torchrun sends SIGTERM of its own; any other signal it only passes on."""
    assert watch(f"{STEPS}{CLOSING} SIGTERM\n").verdict.error_type != "cancelled"


def test_a_rank_that_failed_before_the_terminal_closed_is_the_cause(watch: Watch) -> None:
    log = f"{STEPS}{frames('ValueError: no wheels')}\n{CLOSING} SIGHUP\n"
    assert watch(log).verdict.root_line == "ValueError: no wheels"
