"""IPython names an exception without its module. Below the traceback the same word ends the cell."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.endings.closing_lines import NAMED
from unit.agents.conftest import Watch

STEPS = "".join(f"toy {n} of 40 painted, loss 0.{40 - n}\n" for n in range(1, 20))
LINE = "-" * 75 + "\n"
FRAMES = (
    "Input In [7], in <cell line: 3>()\n"
    "      2 paint = mix('red')\n"
    "----> 3 toys.unpack(box)\n"
    "\n"
    "File ~/toys/box.py:41, in unpack(box)\n"
    "     40     lid.lift()\n"
    "---> 41     return inflate(box)\n"
    "\n"
)


def cell(name: str, words: str) -> str:
    return f"{STEPS}{LINE}{name}{'Traceback (most recent call last)':>50}\n{FRAMES}{words}\n"


@pytest.mark.parametrize(
    ("name", "words", "error_type"),
    [
        ("error", "error: the lid of box 7 does not open", "exception"),
        ("error", "error: the lid of box 7 does not open\nUse a knife.\n\nOr a saw.", "exception"),
        ("timeout", "timeout: the room of toys", "communication"),
        ("gaierror", "gaierror: no such room", "communication"),
        ("Wheel_Lost", "Wheel_Lost: 3", "exception"),
    ],
)
def test_the_name_below_the_traceback_ends_the_cell(
    watch: Watch, name: str, words: str, error_type: str
) -> None:
    done = watch(cell(name, words))
    assert (done.verdict.error_type, done.verdict.root_line) == (error_type, words.partition("\n")[0])
    assert (done.decision.action, done.decision.reason.startswith(NAMED)) == ("hold", True)


@pytest.mark.parametrize(
    "text",
    [
        cell("error", "error: the lid does not open") + STEPS,  # the next cell
        f"{STEPS}error: the lid does not open: tried with 7 knives\n{STEPS}",
        f"{STEPS}the error Traceback of a toy\nerror: 7\n",
    ],
)
def test_the_same_words_elsewhere_end_nothing(watch: Watch, text: str) -> None:
    assert watch(text).verdict.state != "failed"


def test_what_a_rule_knows_keeps_its_rule(watch: Watch) -> None:
    done = watch(
        cell("OutOfMemoryError", "OutOfMemoryError: CUDA out of memory. Tried to allocate 7.00 GiB.")
    )
    assert (done.verdict.error_type, bool(done.verdict.rule)) == ("oom", True)


def test_a_debugger_that_a_person_left_was_interrupted(watch: Watch) -> None:
    prompt = "> <ipython-input-1-7df9e338fd99>(10)paint()\n-> for toy in toys:\n"
    done = watch(f"{STEPS}{prompt}--KeyboardInterrupt--\n--KeyboardInterrupt--\n")
    assert done.verdict.error_type == "user_interrupt"
