"""What stands above a traceback that no exception ends: words on the failure, or a warning beside it."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

OPEN = """Traceback (most recent call last):
  File "/toy/train.py", line 17, in <module>
    main()
  File "/toy/wheel.py", line 9, in main
    return toy.turn(wheel)
"""


@pytest.mark.parametrize(
    "above",
    [
        "2026-03-02 10:00:00 | WARNING | toy.data | 7 samples have invalid sizes and are left out",
        "/toy/rim.py:41: RuntimeWarning: invalid value encountered in greater\n  rim > spoke",
        "/toy/hub.py:7: UserWarning: Fail to import `Hub`\n  warnings.warn('Fail to import `Hub` from '",
        "val: Scanning /toy/val.cache... 77 images, 0 corrupt: 100%|######| 77/77 [00:00<?, ?it/s]",
        "E0000 00:00:1742409791.80 352 toy_blas.cc:18] Unable to register toyBLAS factory: one is there",
        "id: cannot find name for group ID 5012",
        "wandb: Network error (ReadTimeout), entering retry loop.",
    ],
)
def test_a_warning_above_is_not_what_failed(watch: Watch, above: str) -> None:
    done = watch(f"{above}\n{OPEN}")
    assert (done.verdict.root_line, done.decision.action) == ("    return toy.turn(wheel)", "hold")


@pytest.mark.parametrize(
    "above",
    [
        "  0%|          | 0/259 [00:00<?, ?it/s]ERROR: Unexpected end of the toy's wheel",
        "the wheel is corrupt, the toy ends",
    ],
)
def test_the_programs_own_words_on_it_are(watch: Watch, above: str) -> None:
    assert watch(f"{above}\n{OPEN}").verdict.root_line == above


def test_an_agent_of_rays_dashboard_takes_nothing_with_it(watch: Watch) -> None:
    above = "2026-03-02 10:00:00,118\tWARNING worker.py:1107 -- The agent on node toy-7 {}\n"
    told = above.format("failed with the following error:")
    assert watch(told + OPEN).verdict.state != "failed"
    assert watch(above.format("is well") + OPEN).verdict.state == "failed"
