"""A script tells of the codes of its parts. One that ended badly left its work undone."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.endings.stage_codes import badly_ended_part, failed_commands
from midwatch.agents.replay.reading.log_files import LogFile
from unit.agents.conftest import Watch


def bad_part(*lines: str) -> int:
    return badly_ended_part(LogFile("toy.log", "\n".join(lines).encode(), 0.0))


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        (("+ 07:00:01 paint exited 1", "+ 07:00:09 pack exited 0"), 1),
        (("[toys] part 0 joined, exitcode 0", "[toys] part 1 joined, exitcode 1"), 2),
        (("mon finished, status=0", "tue finished, status=3", "wed finished, status=0"), 2),
        (("paint ended with code 0", "pack ended with code -9"), 2),
        (("try 1 ended with 85", "try 2 ended with 0"), 0),
        (("paint exited 1", "paint exited 0", "pack exited 0"), 0),
        (("paint exited 1", "pack exited 1"), 0),
        (("paint exited 1", "pack ended with code 0"), 0),
        (("the picture is optional", "paint exited 1", "pack exited 0"), 0),
        (("paint exited 0", "pack exited 0"), 0),
        (("paint exited 0", "the watch over toys exited 143"), 0),
        (("epoch 1 finished 7", "epoch 2 finished 0 of 9"), 0),
    ],
)
def test_a_part_ended_badly_beside_one_that_did_not(lines: tuple[str, ...], number: int) -> None:
    assert bad_part(*lines) == number


def test_the_failure_of_the_part_is_the_root(watch: Watch) -> None:
    raised = (
        "Traceback (most recent call last):\n"
        '  File "paint.py", line 9, in <module>\n'
        "    paint()\n"
        "KeyError: 'wheels'\n"
    )
    packed = "".join(f"pack: toy {toy}/20 weighs 0.{toy:02}\n" for toy in range(1, 21))
    log = f"-> paint\n{raised}-> paint exited {{}}\n-> pack\n{packed}-> pack exited 0\n"
    done = watch(log.format(1))
    assert (done.verdict.state, done.verdict.root_line) == ("failed", "KeyError: 'wheels'")
    assert watch(log.format(0)).verdict.state != "failed"


STAGES = "INFO | Stage 1: paint\nERROR | Command failed with code 1\nINFO | Stage 2: pack\n"


@pytest.mark.parametrize(
    ("log", "number"),
    [
        pytest.param(STAGES + "ERROR | Command failed with code 2\nINFO | TOYS COMPLETE\n", 2, id="several"),
        pytest.param(STAGES + "INFO | TOYS COMPLETE\n", 0, id="one alone may be needless"),
        pytest.param(
            STAGES + "ERROR | Command failed with code 2, again in 7 s\nINFO | TOYS COMPLETE\n", 0, id="tries"
        ),
        pytest.param(
            STAGES + "ERROR | Optional command failed with code 2\nINFO | TOYS COMPLETE\n", 0, id="optional"
        ),
        pytest.param(
            STAGES + "ERROR | Command failed with code 2\n" + "INFO | packs a toy\n" * 400,
            0,
            id="long before",
        ),
    ],
)
def test_commands_that_a_driver_went_on_behind_have_no_result(log: str, number: int) -> None:
    assert failed_commands(LogFile("toy.log", log.encode(), 0.0)) == number


def test_a_person_is_told_why_a_command_of_a_driver_failed(watch: Watch) -> None:
    raised = "ERROR |   Traceback (most recent call last):\nERROR |   KeyError: 'wheels'\n"
    begun, failed, packed = STAGES.splitlines(keepends=True)
    trained = "".join(f"INFO | toy {n}: {chr(97 + n % 26) * (n % 5 + 1)}\n" for n in range(70))
    done = watch(f"{begun}{failed}{raised}{packed}{trained}{failed}{trained}INFO | TOYS COMPLETE\n")
    assert (done.verdict.state, done.decision.action) == ("failed", "hold")
