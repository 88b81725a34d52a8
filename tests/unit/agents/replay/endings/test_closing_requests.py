"""A saved log that ends with a request to end. Who asked is not known, so a person decides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.replay.endings.closing_requests import asked_to_end
from unit.agents.conftest import Watch

BAR = "Epoch 1:  26%|##5       | {}/3861 [15:15<43:28,  1.10it/s, v_num=19]"
ASKED = "[rank: {}] Received SIGTERM: 15\n"
PASSED_ON = "pid 4188 killing 4189 with 15\n"
RUN = BAR.format(1002) + "\n" + BAR.format(1003)


def test_a_log_that_ends_with_a_request_to_end_was_cancelled(watch: Watch) -> None:
    done = watch(RUN + ASKED.format(0) + PASSED_ON + ASKED.format(1) + BAR.format(1004) + "\n")
    assert (done.verdict.error_type, done.verdict.root_line_number) == ("cancelled", 2)
    assert done.decision.action == "hold"
    assert done.decision.reason == "the log ends with a request to end, and no line says who asked"
    assert watch(RUN + "\n" + ASKED.format(0) + ASKED.format(1)).verdict.root_line_number == 3
    passed_on = watch(RUN + "\n" + PASSED_ON + ASKED.format(1) + BAR.format(1004) + "\n")
    assert passed_on.verdict.root_line_number == 4


def test_a_request_behind_which_the_run_goes_on_ended_nothing(watch: Watch) -> None:
    assert watch(RUN + ASKED.format(0) + BAR.format(1017) + "\n").verdict.state == "healthy"
    assert watch(RUN + ASKED.format(0) + "the toys are counted\n").verdict.state == "healthy"
    assert watch(RUN + "\n" + ASKED.format(0) + BAR.format(1004) + "\n").verdict.state == "healthy"


@given(st.lists(st.sampled_from([RUN, ASKED.format(0), PASSED_ON, BAR.format(1004), "toy"]), max_size=9))
def test_the_request_is_a_line_that_names_the_signal(texts: list[str]) -> None:
    numbered = list(enumerate((text.strip().encode() for text in texts), 1))
    found = asked_to_end(numbered)
    assert found is None or b"SIGTERM" in dict(numbered)[found]


def test_a_traceback_that_a_request_interrupted_is_cut_by_it(watch: Watch) -> None:
    cut = 'Traceback (most recent call last):\n  File "/toys/paint.py", line 9, in <module>\n    paint(toy)\n'
    run = watch(f"a toy\n[rank: 0] Received SIGTERM: 15\n{cut}")
    assert (run.verdict.error_type, run.decision.action) == ("cancelled", "hold")
    assert run.verdict.root_line == "[rank: 0] Received SIGTERM: 15"
    assert watch(f"[rank: 0] Received SIGTERM: 15\nthe next toy\n{cut}").verdict.error_type == "exception"
