"""What a shell, a tracker or an interpreter prints behind a program does not hide its last words."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.endings.said_at_any_end import before_the_last_word_of_others
from unit.agents.conftest import Watch

STEPS = "".join(f"step {n} loss {3 - n / 50:.3f}\n" for n in range(1, 9))
LOGGED = "2026-03-02 11:52:40,118 - toys - ERROR - no paint is left for the toys"
LACKS = "./paint.sh: line 7: cd: /toy/paint: No such file or directory"
SAID = "toy: the link to n4 is down"
TAILS = {
    "time": "\nreal\t3m7.118s\nuser\t2m1.077s\nsys\t0m9.410s\n",
    "GNU time": "77.18user 4.10system 1:18.77elapsed 103%CPU (0avgtext+0avgdata 41880maxresident)k\n"
    "0inputs+77outputs (0major+4188minor)pagefaults 0swaps\n",
    "date": "Mon Mar  2 11:52:40 CET 2026\n",
    "tracker": "wandb: \nwandb: Run summary:\nwandb: toys 77\nwandb: Find logs at: ./wandb/toy-7/logs\n",
    "semaphores of python 3.6": "/py/multiprocessing/semaphore_tracker.py:7: UserWarning: semaphore_tracker: "
    "There appear to be 7 leaked semaphores to clean up at shutdown\n  len(cache))\n",
    "semaphores": "/py/multiprocessing/resource_tracker.py:7: UserWarning: resource_tracker: There appear to "
    "be 7 leaked semaphore objects to clean up at shutdown\n"
    "  warnings.warn('resource_tracker: There appear to be %d '\n",
    "process group": "[rank0]:[W302 11:52:40 ProcessGroupNCCL.cpp:77] Warning: WARNING: process group has "
    "NOT been destroyed before we destruct ProcessGroupNCCL.\n",
    "IPython": "\nIf you suspect this is an IPython 7.18.0 bug, please report it at:\n"
    "    https://github.com/ipython/ipython/issues\n"
    "or send an email to the mailing list at toys@example.org\n\n"
    'You can print a more detailed traceback right now with "%tb", or use "%debug"\n'
    "to interactively debug it.\n\nExtra-detailed tracebacks for bug-reporting purposes can be enabled via:\n"
    "    %config Application.verbose_crash=True\n",
    "a rule": "=====================\n",
}


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
@pytest.mark.parametrize("end", [LOGGED, SAID])
def test_the_program_s_last_words_stand_above_it(watch: Watch, end: str, tail: str) -> None:
    bare, done = watch(f"{STEPS}{end}\n"), watch(f"{STEPS}{end}\n{tail}")
    assert done.verdict.root_line == end
    assert (done.verdict.error_type, done.decision.action) == (bare.verdict.error_type, bare.decision.action)
    assert watch(STEPS + tail).verdict.state == "healthy"


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
def test_what_a_script_lacks_at_its_end_stands_above_it_too(watch: Watch, tail: str) -> None:
    assert watch(f"painting\n{LACKS}\n{tail}").verdict.root_line == LACKS


@pytest.mark.parametrize("more", ["the toys are put away", "wandb: ERROR no toys are left", "real toys: 77"])
def test_a_line_of_the_program_is_none_of_these(more: str) -> None:
    lines = [(1, LOGGED.encode()), (2, more.encode()), (3, b"sys\t0m9.410s")]
    assert before_the_last_word_of_others(lines) == lines[:2]


def test_a_log_of_nothing_else_has_no_last_words() -> None:
    assert before_the_last_word_of_others([(1, b"wandb: Synced"), (2, b"")]) == []
