"""A shell's word below the last clock of an `.err`: the `.out` goes on printing times until then."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

OUT = "".join(f"2026-03-02 11:{minute:02}:00 step {minute} loss 2.{minute}\n" for minute in range(1, 20))
BEGUN = "2026-03-02 11:00:00 the toy begins\n"


@pytest.mark.parametrize(
    "said", ["Killed\n", "toy.sh: line 7:  4188 Segmentation fault      python train.py\n"]
)
def test_it_ends_the_job_though_steps_have_later_times(watch: Watch, said: str) -> None:
    for logs in ((BEGUN + said, OUT), (OUT, BEGUN + said)):
        assert watch(*logs).verdict.root_line == said.strip()


@pytest.mark.parametrize(
    "err",
    [
        BEGUN + "Killed\n2026-03-02 11:05:00 the toy goes on\n",  # a later clock stands below
        BEGUN + "RuntimeError: the wheel is odd\n",  # the program may have caught it
    ],
)
def test_what_a_later_clock_follows_or_a_program_may_catch_is_as_old_as_the_clock_above(
    watch: Watch, err: str
) -> None:
    assert watch(err, OUT).verdict.state == "healthy"


LEFT = (
    "2026-03-02 11:05:00 step 5 loss 2.5\nTraceback (most recent call last):\n"
    '  File "/toy/train.py", line 31, in <module>\n    main()\n'
    "OSError: [Errno 28] No space left on device: '/toy/lid.pt'\n"
)
FULL = LEFT.splitlines()[-1]
LATER = "2026-03-02 11:30:00 ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


def test_a_rank_that_left_by_an_exception_stays_in_front_of_one_that_failed_later(watch: Watch) -> None:
    before = "".join(OUT.splitlines(keepends=True)[:4])
    assert watch(before + LATER, LEFT).verdict.root_line == FULL
    assert watch(OUT, LEFT).verdict.root_line == FULL
