"""A card fails, and CUDA's error follows from that. The kernel's log often stands behind the training's."""

from __future__ import annotations

import pytest

from midwatch.agents.detect.diagnosis.verdict import diagnose
from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_cascades import frames
from unit.agents.detect.diagnosis.test_not_root import ended, seen
from unit.agents.detect.diagnosis.test_scheduler_word import CONTRADICTS, STEPS

XID = "[9177.4] NVRM: Xid (PCI:0000:4f:00): {}, pid=4188, name=toy, something of the toy\n"
LAUNCH = frames("RuntimeError: CUDA error: unspecified launch failure") + "\n"
ACCESS = frames("torch.AcceleratorError: CUDA error: an illegal memory access was encountered") + "\n"
CUBLAS = frames("RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `toyGemm(h)`") + "\n"
CUDNN = frames("RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR") + "\n"
LOST = "Unable to determine the device handle for GPU 0000:4F:00.0: GPU is lost.  Reboot the system\n"
BUSY = frames("RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable") + "\n"
REFUSED = frames("RuntimeError: cuDNN error: CUDNN_STATUS_BAD_PARAM") + "\n"
DAYS_AGO = "[Wed Nov 18 03:11:12 2026] NVRM: Xid (PCI:0000:4f:00): 79, pid=41, GPU has fallen off the bus.\n"
TODAY = DAYS_AGO.replace("Wed Nov 18", "Tue Nov 24")
DATED = "2026-11-24 02:05:12 the toy begins\n"


@pytest.mark.parametrize("raised", [LAUNCH, ACCESS, CUBLAS, CUDNN, BUSY])
@pytest.mark.parametrize("word", [*map(XID.format, (48, 74, 79, 95, 119)), LOST])
def test_the_drivers_word_behind_an_error_of_cuda_tells_why(watch: Watch, raised: str, word: str) -> None:
    for logs in ((STEPS + raised + word,), (STEPS + raised, word)):
        done = watch(*logs)
        assert (done.verdict.error_type, done.verdict.root_line) == ("hardware", word.strip())
        assert done.decision.action == "restart"


@pytest.mark.parametrize(
    ("raised", "number"), [(LAUNCH, 13), (LAUNCH, 31), (ACCESS, 13), (ACCESS, 31), (ACCESS, 43)]
)
def test_an_xid_of_the_program_leaves_the_programs_error_the_root(
    watch: Watch, raised: str, number: int
) -> None:
    done = watch(STEPS + raised + XID.format(number))
    assert (done.verdict.error_type, done.verdict.root_line) == ("torch", raised.splitlines()[-1])
    assert done.decision.action == "stop"


def test_an_xid_that_only_follows_tells_not_why_a_kernel_ended(watch: Watch) -> None:
    done = watch(STEPS + LAUNCH + XID.format(43))
    assert (done.verdict.root_line, done.decision.action) == (LAUNCH.splitlines()[-1], "restart")


@pytest.mark.parametrize("raised", [REFUSED, CONTRADICTS])
def test_what_no_card_brings_about_stays_the_root(watch: Watch, raised: str) -> None:
    alone, beside = watch(STEPS + raised), watch(STEPS + raised + XID.format(79))
    assert beside.verdict.root_line == alone.verdict.root_line == raised.splitlines()[-1]
    assert beside.decision.action == alone.decision.action


def test_a_kernel_that_fell_over_is_no_card(watch: Watch) -> None:
    oops = "kernel: BUG: unable to handle page fault for address: 0000000000000010\n"
    assert watch(STEPS + ACCESS + oops).verdict.root_line == ACCESS.splitlines()[-1]


def test_a_kernels_log_since_the_boot_holds_cards_that_failed_for_other_runs(watch: Watch) -> None:
    log = DATED + STEPS + LAUNCH + "--- dmesg -T ---\n"
    assert watch(log + DAYS_AGO).verdict.error_type == "torch"
    assert watch(log + TODAY).verdict.error_type == "hardware"


def test_a_card_of_another_node_explains_nothing() -> None:
    raised = seen(3, "cuda_illegal_access", kind="torch")
    word = seen(6, "xid_hardware", kind="hardware", text=XID.format(79))
    other = seen(6, "xid_hardware", kind="hardware", text=XID.format(79), node="n2")
    assert diagnose([raised, word], ended()).evidence[0] is word
    assert diagnose([raised, other], ended()).evidence[0] is raised


_KERNEL = "[{} 2026] NVRM: Xid (PCI:0000:0{}:00): {}, pid=4188, name=toy, something of the toy\n"


def test_of_a_kernels_log_of_days_the_last_day_counts(watch: Watch) -> None:
    today = _KERNEL.format("Sun Aug  9 13:32:56", 8, 94)
    done = watch(_KERNEL.format("Wed Aug  5 03:54:13", 7, 31) + today)
    assert (done.verdict.error_type, done.verdict.root_line) == ("hardware", today.strip())
    early = _KERNEL.format("Sun Aug  9 03:54:13", 7, 31)
    assert watch(early + today).verdict.root_line == early.strip()
