"""Words that a framework prints once for each start begin one, in a file to which all starts append."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch
from unit.agents.replay.starts.test_appended_starts import LOADS, OUT_OF_MEMORY, RAISED

MMCV = "2026-03-02 11:52:40,118 - mmtoy - INFO - Environment info: \n------\n"
MMENGINE = "2026/03/02 11:52:40 - mmengine - INFO - \n------\nSystem environment:\n"
PADDLE = "------------Environment Information-------------\n"
NIGHT = "########## Mon Mar  2 11:52:40 CET 2026 ##########\n"
ATTEMPT = "=== attempt 2/7  2026-03-02 11:52:40\n"
WRAPPERS = [
    "Mon Mar  2 11:52:40 CET 2026: starting attempt 2\n",
    "[watch] the run exited with 1, relaunching\n",
    "Toys crashed with exit code 1.  Respawning..\n",
    "[watch] restarting the training in 10 s\n",
    "Restarting in 10s...\n",
    "Mar 02 11:52:40 n4 systemd[1]: toys.service: Scheduled restart job, restart counter is at 3.\n",
]
DETECTRON = "[03/02 11:52:40 detectron2]: Rank of current process: 0. World size: 2\n"


@pytest.mark.parametrize(
    "mark", [MMCV, MMENGINE, PADDLE, DETECTRON, DETECTRON.replace("2]:", "2] toytron2 INFO:"), ATTEMPT, NIGHT]
)
def test_each_start_prints_them_once(watch: Watch, mark: str) -> None:
    done = watch("toy 1\n" + mark + LOADS + RAISED + mark + LOADS + OUT_OF_MEMORY)
    assert done.verdict.error_type == "oom"
    assert [each.verdict.error_type for each in done.earlier] == ["exception"]


SERVER = "(APIServer pid=71) INFO 03-02 11:52:40 [api_server.py:1896] vLLM API server version 0.10.2\n"


def test_a_server_that_was_started_anew_is_judged_by_its_last_start(watch: Watch) -> None:
    served = "".join(f'INFO: 10.0.0.{n}:480 - "POST /toys/{n} HTTP/1.1" 200 OK\n' for n in range(40))
    other = SERVER.replace("71", "99")
    done = watch(SERVER + served + OUT_OF_MEMORY + other + served)
    assert (done.verdict.state, [each.verdict.error_type for each in done.earlier]) == ("unknown", ["oom"])
    assert watch(SERVER + OUT_OF_MEMORY + other + served).earlier == ()


def test_a_few_words_above_the_first_ones_are_no_start_and_each_has_its_own_losses(watch: Watch) -> None:
    def at(loss: float, first: int, last: int) -> str:
        return "".join(f"step: {step}  loss: {loss + step / 1000:.4f}\n" for step in range(first, last + 1))

    first = "fatal: not a git repository (or any parent up to mount point /)\n" + MMCV + LOADS
    done = watch(first + at(0.1, 1, 60) + at(9.0, 61, 70) + first + at(6.0, 31, 60))
    assert (done.verdict.state, len(done.earlier)) == ("healthy", 1)
    assert watch(at(0.1, 1, 60) + at(9.0, 61, 70)).verdict.error_type == "loss_spike"


def test_the_first_words_of_another_rank_are_no_start(watch: Watch) -> None:
    other = DETECTRON.replace("process: 0", "process: 1")
    assert watch(DETECTRON + LOADS + OUT_OF_MEMORY + other + LOADS + RAISED).earlier == ()


def test_a_rank_that_writes_a_file_of_its_own_says_who_it_is_at_each_start(watch: Watch) -> None:
    own = DETECTRON.replace("process: 0", "process: 5")
    builds = "".join(
        f"[03/02 11:52:41 toytron2]: builds layer {letter}\n" for letter in "abcdefghijklmnopqrst" * 2
    )
    done = watch(own + builds + RAISED + own + builds + OUT_OF_MEMORY)
    assert done.verdict.error_type == "oom"
    assert [each.verdict.error_type for each in done.earlier] == ["exception"]


def test_words_of_a_start_count_where_the_first_lines_of_the_file_repeat_too_often(watch: Watch) -> None:
    often = "A matching toy is not at hand.\nError caught was: No module named 'toy'\nfewer toys are found\n"
    often += "".join(f"toy {letter} is loaded\n" for letter in "abcdefghijklmn")
    done = watch(often * 70 + DETECTRON + LOADS + OUT_OF_MEMORY + often * 3 + DETECTRON + LOADS + RAISED)
    assert done.verdict.error_type == "exception"
    assert [each.verdict.error_type for each in done.earlier][-1:] == ["oom"]


@pytest.mark.parametrize("mark", WRAPPERS)
def test_a_script_that_keeps_its_program_alive_says_so_at_each_start(watch: Watch, mark: str) -> None:
    done = watch("toy 1\n" + LOADS + RAISED + mark + "toy 1 paints\n" + OUT_OF_MEMORY)
    assert done.verdict.error_type == "oom"
    assert [each.verdict.error_type for each in done.earlier] == ["exception"]


@pytest.mark.parametrize(
    "line",
    [
        "[pool] worker 3 died, restarting it in 5 s\n",
        "restarting the reader of toys\n",
        "Restarting training from last epoch ...\n",
        "attempt 2 was the last one, starting attempt 3 failed\n",
        "the toys are respawning in the shop\n",
    ],
)
def test_what_a_program_starts_anew_within_its_run_is_no_start(watch: Watch, line: str) -> None:
    assert watch("toy 1\n" + LOADS + RAISED + line + "toy 1 paints\n" + OUT_OF_MEMORY).earlier == ()


def test_how_an_attempt_ended_is_no_start(watch: Watch) -> None:
    ended = "=== attempt 1/7 failed with exit code 1\n"
    assert watch(ATTEMPT + LOADS + OUT_OF_MEMORY + ended + LOADS + RAISED).earlier == ()


def test_a_start_that_counts_batches_of_an_epoch_is_judged_by_its_own_losses(watch: Watch) -> None:
    def epoch(number: int, *losses: float) -> str:
        head = f"2026-03-02 11:52:40,118 - mmtoy - INFO - Epoch [{number}]"
        batches = enumerate(losses, 1)
        return "".join(
            f"{head}[{50 * n}/900]\tlr: 1.000e-02, time: 1.7, loss: {loss}\n" for n, loss in batches
        )

    low, high = epoch(7, *(0.1 + n / 1000 for n in range(16))), epoch(8, 2.0, 2.1, 2.05)
    done = watch(MMCV + LOADS + low + MMCV + LOADS + high)
    assert (done.verdict.state, [each.verdict.state for each in done.earlier]) == ("healthy", ["healthy"])
    assert watch(MMCV + LOADS + low + high).verdict.error_type == "loss_spike"
