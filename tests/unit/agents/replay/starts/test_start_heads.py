"""What a start prints first stands again behind an exception: another start printed it."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.starts.start_heads import heads_behind_ends
from unit.agents.conftest import Watch

RAISED = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    main()\n{}\n'
NO_MODULE = RAISED.format("ModuleNotFoundError: No module named 'toylib'")
SHAPE = RAISED.format("RuntimeError: The size of tensor a (8) must match the size of tensor b (6)")
STOPPED = RAISED.format("KeyboardInterrupt")
CONFIG = "".join(f"toy_setting_{letter}: the default\n" for letter in "abcdefgh") + "local_rank: 0\n"


def places(text: str) -> list[int]:
    return [number for _, number in heads_behind_ends(LogFile("toy.log", text.encode(), 0.0))]


def test_a_head_behind_an_exception_begins_a_start() -> None:
    assert places(CONFIG + NO_MODULE + CONFIG + SHAPE) == [14]
    assert places(NO_MODULE + CONFIG + SHAPE + "Retries to connect\n" + CONFIG + STOPPED) == [18]


def test_a_file_of_many_megabytes_is_searched_like_a_small_one(watch: Watch) -> None:
    paints = "".join(f"the toy {at} is painted, and dries on a shelf of its own\n" for at in range(60_000))
    assert len(paints) > 3 << 20
    assert places(CONFIG + paints + NO_MODULE + CONFIG + "the toys are done\n") == [60_014]
    assert watch(CONFIG + paints + NO_MODULE + CONFIG + paints).verdict.state != "failed"


def test_a_model_that_is_printed_amid_a_head_hides_none() -> None:
    first = CONFIG.splitlines(keepends=True)
    model = "".join(f"  (wheel {at}): Wheel(in=7, out=9)\n" for at in range(70))
    assert places("".join(first[:3]) + model + "".join(first[3:]) + SHAPE + CONFIG + SHAPE) == [84]


def test_what_ray_lists_below_its_exception_belongs_to_the_start_that_ended(watch: Watch) -> None:
    words = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."
    listed = (
        "Memory on the node (IP: 10.0.0.7, ID: 41ab) where the task (actor ID: 77cd, pid=88) was running was "
        "30.00GB / 31.00GB (0.96), which exceeds the memory usage threshold of 0.95. Ray killed this worker\n"
        "PID\tMEM(GB)\tCOMMAND\n88\t29.00\tray::Toy.train\n"
        "Refer to the documentation on how to address the out of memory issue: the toy's page\n"
    )
    full = RAISED.format(words) + listed
    assert places(CONFIG + full + CONFIG + SHAPE) == [10 + full.count("\n")]
    done = watch(CONFIG + full + CONFIG + SHAPE)
    assert done.verdict.root_line == SHAPE.splitlines()[-1]
    assert [each.verdict.error_type for each in done.earlier] == ["host_oom"]


@pytest.mark.parametrize(
    "text",
    [
        CONFIG + NO_MODULE + "wandb: the run has ended\n" * 8 + SHAPE,
        CONFIG + NO_MODULE + "".join(CONFIG.splitlines(keepends=True)[:4]) + SHAPE,
        CONFIG + CONFIG + NO_MODULE + SHAPE,
        "toy.py: error: unrecognized arguments: --wings 2\n" + CONFIG + SHAPE,
        CONFIG + NO_MODULE.replace("<module>", "step") + CONFIG + SHAPE,
        "".join(f"step {at} of the toy training is done\n" for at in range(9))
        + NO_MODULE
        + "".join(f"step {at} of the toy training is done\n" for at in range(9)),
    ],
)
def test_other_lines_begin_none(text: str) -> None:
    assert places(text) == []


def test_an_agent_that_tells_of_its_workers_is_of_their_start() -> None:
    told = "E0302 11:52:44 torch/distributed/elastic/api.py:826] failed (exitcode: 1) local_rank: 0\n"
    agent = RAISED.format("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ")
    assert places(CONFIG + NO_MODULE + told + CONFIG + agent.replace("train.py", "/toy/bin/torchrun")) == []
    assert places(CONFIG + NO_MODULE + told + agent + CONFIG + NO_MODULE) == [19]


def test_the_last_start_counts_though_the_file_speaks_of_ranks(watch: Watch) -> None:
    done = watch(CONFIG + NO_MODULE + CONFIG + NO_MODULE + CONFIG + SHAPE)
    assert done.verdict.error_type == "torch"
    assert [each.verdict.error_type for each in done.earlier] == ["import_error", "import_error"]
    done = watch(CONFIG + NO_MODULE + CONFIG + STOPPED)
    assert (done.verdict.error_type, done.decision.action) == ("user_interrupt", "hold")


def test_headings_that_a_file_begins_with_begin_the_next_start(watch: Watch) -> None:
    first = "=== 1 of 2: the toy is built already ===\n\n=== 2 of 2: paints the toy ===\n"
    assert places(first + NO_MODULE + first + "paints\n") == [first.count("\n") + 5]
    assert watch(first + NO_MODULE + first + "paints\n").verdict.state != "failed"
    ranks = first + "local_rank: 0\n"
    assert places(ranks + NO_MODULE + ranks) == []
    plain = first.replace("=", "")
    assert places(plain + NO_MODULE + plain) == []


LOADS = "takes the toys from the cache of the toy shop\n"
BAR = " 18%|#8   | 7/40 [00:07<00:33, 1.00it/s]"


def test_a_file_s_first_lines_behind_a_shell_s_word_on_a_signal_begin_the_next_start(watch: Watch) -> None:
    for told in (f"{BAR}Killed\n", f"{BAR}\nTerminated\n"):
        text = LOADS * 2 + told + LOADS * 2 + BAR + "\n"
        assert places(text) == [3 + told.count("\n")]
        assert places(LOADS * 2 + told + "the toys are painted\n" + LOADS) == []
        assert places(text + "local_rank: 1\n") == []
    done = watch(LOADS * 2 + f"{BAR}Killed\n" + LOADS * 2 + BAR + "\n" + SHAPE)
    assert (done.verdict.error_type, len(done.earlier)) == ("torch", 1)
    assert places(LOADS * 2 + "Killed 7 toys\n" + LOADS * 2) == []


WARNS = "/toy/src/train.py:24: DeprecationWarning: `np.toy` is an old alias\n  if not hasattr(np, 'toy'):\n"
OF_LIB = WARNS.replace("/toy/src/train.py", "/toy/lib/layers.py")
NAMED = NO_MODULE.replace('"train.py"', '"/toy/src/train.py"')
RANKED = NAMED.replace("main()", "main(local_rank)")


def test_a_script_that_warns_again_behind_its_exception_was_started_again() -> None:
    assert places(WARNS + NAMED + WARNS) == [7]
    assert places(WARNS + RANKED + WARNS + RANKED + WARNS) == [7, 13]
    assert places(WARNS + WARNS + NAMED + WARNS) == [9]


@pytest.mark.parametrize(
    "text",
    [
        WARNS + WARNS + RANKED + WARNS,
        OF_LIB + NAMED + OF_LIB,
        NAMED + WARNS,
        WARNS + NAMED + "the toy is told again\n" * 20 + WARNS,
    ],
)
def test_warnings_of_ranks_and_of_libraries_begin_no_start(text: str) -> None:
    assert places(text) == []


AGENT = "".join(
    f"W0302 11:{{}}:00.118 {{}} torch/distributed/run.py:793] {words}\n"
    for words in (
        "",
        "*" * 41,
        "Setting OMP_NUM_THREADS environment variable for each process to be 1",
        "*" * 41,
    )
)
SERVED = "".join(f"{letter}{other} is served\n" for letter in "abcdefgh" for other in "klmnopqrs")
HUNG_UP = (
    "Traceback (most recent call last):\n"
    '  File "/toys/bin/torchrun", line 8, in <module>\n'
    "    sys.exit(main())\n"
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4188 got signal: 1\n"
)


def test_an_agent_that_begins_behind_one_that_a_signal_ended_begins_a_start(watch: Watch) -> None:
    first, last = AGENT.format(*[10, 4188] * 4), AGENT.format(*[12, 4201] * 4)
    ended = SERVED + first + "the toys are read\n" + HUNG_UP
    assert watch(ended).verdict.state == "failed"
    assert watch(ended + last + "the toys are read\n").verdict.state != "failed"
