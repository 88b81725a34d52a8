"""An exception that a hook prints without its name ended the program all the same."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.endings.closing_lines import HEADLESS
from midwatch.agents.replay.endings.said_before_exit import RAISED
from unit.agents.conftest import Watch

STEPS = "".join(
    f"{{'loss': 2.{9 - n}, 'grad_norm': 0.9, 'learning_rate': 1e-05, 'epoch': 0.{n}}}\n" for n in range(1, 9)
)
FRAMES = (
    '  File "/toys/fit.py", line 77, in <module>\n'
    "    main()\n"
    '  File "/toys/fit.py", line 41, in main\n'
    "    wheels.turn()\n"
)
WORDS = "The toy has no wheels, and three are asked for."
SEEN = "swanlab: Error happened while training\nswanlab: View run at https://toys.example/runs/7\n"
ENDED = "srun: error: n4: task 0: Exited with exit code 1\n"


@pytest.mark.parametrize(
    ("text", "how"),
    [
        (f"{STEPS}{FRAMES}{WORDS}\n", HEADLESS),
        (f"{STEPS}{FRAMES}{WORDS}\nSee the page on wheels.\n", HEADLESS),
        (f"{STEPS}{SEEN}{FRAMES}{WORDS}\n", RAISED),
        (f"{STEPS}{FRAMES}{WORDS}\n{SEEN}", RAISED),
        (f"{STEPS}{FRAMES}{WORDS}\n{ENDED}", RAISED),
    ],
)
def test_the_words_of_an_exception_without_a_name_are_the_root(watch: Watch, text: str, how: str) -> None:
    done = watch(text)
    assert (done.verdict.error_type, done.verdict.root_line) == ("exception", WORDS)
    assert done.decision.action == "hold"
    assert done.decision.reason.startswith(how)


def test_words_that_a_rule_knows_need_no_name(watch: Watch) -> None:
    done = watch(f"{STEPS}{SEEN}{FRAMES}CUDA out of memory. Tried to allocate 7.00 GiB.\n")
    assert done.verdict.error_type == "oom"


@pytest.mark.parametrize(
    "text",
    [
        f"Call stack:\n{FRAMES}Message: 'a toy'\nArguments: ()\n",
        f"Current thread 0x00007f3a (most recent call first):\n{FRAMES}the next stage begins\n",
        f"{FRAMES}{WORDS}\n{STEPS}",
        f"{FRAMES}UserWarning: a wheel is loose\n",
        f"{FRAMES}",
        '  File "/toys/fit.py", line 41, in main\n    wheels.turn()\n' + WORDS + "\n",
        FRAMES + '  File "/toys/fit.py", line 9, in turn\n    traceback.print_stack()\nthe wheel turns\n',
        f"{FRAMES}{WORDS}\n" + "the toy is painted\n" * 6,
    ],
    ids=[
        "a logger's stack",
        "a dump",
        "steps behind it",
        "a warning",
        "no words",
        "no outermost frame",
        "a stack that the program shows",
        "more lines behind it",
    ],
)
def test_other_frames_end_nothing(watch: Watch, text: str) -> None:
    assert watch(STEPS + text).verdict.state != "failed"


def test_a_tracker_tells_that_a_person_interrupted_the_program(watch: Watch) -> None:
    done = watch(f"{STEPS}swanlab: KeyboardInterrupt by user\n{FRAMES}\n")
    assert (done.verdict.error_type, done.decision.action) == ("user_interrupt", "hold")
