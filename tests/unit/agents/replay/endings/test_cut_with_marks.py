"""A traceback of which a person has left out lines: its mark parts nothing that belongs together."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

WORK = "step 1 loss 2.0\nstep 2 loss 1.9\n"
BEGINS = 'Traceback (most recent call last):\n  File "/toy/train.py", line 17, in <module>\n    main()\n'
FRAME = '  File "/toy/net.py", line 8, in forward\n    return self.turn(wheel)\n'


@pytest.mark.parametrize("below", [f"[...]\n{FRAME}", f"{FRAME}[...]\n", f"...\n{FRAME}...\n"])
def test_a_log_that_ends_within_a_shortened_traceback(watch: Watch, below: str) -> None:
    done = watch(WORK + BEGINS + below)
    assert (done.verdict.error_type, done.verdict.root_line) == ("exception", "    return self.turn(wheel)")
    assert done.decision.reason == "the log ends within a traceback"


THREAD = """Exception in thread Thread-1:
Traceback (most recent call last):
  File "/usr/lib/python3.11/threading.py", line 932, in _bootstrap_inner
    self.run()
  File "/toy/env/torch/utils/data/_utils/pin_memory.py", line 28, in do_one_step
    r = in_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)
[...]
ConnectionResetError: [Errno 104] Connection reset by peer
"""


@pytest.mark.parametrize(
    ("word", "failed"), [("7 epochs completed in 0.5 hours.\n", False), ("toy 7 of 9 painted\n", True)]
)
def test_a_thread_that_fails_behind_the_word_of_success_took_nothing_with_it(
    watch: Watch, word: str, *, failed: bool
) -> None:
    assert (watch(WORK + word + THREAD).verdict.state == "failed") is failed
