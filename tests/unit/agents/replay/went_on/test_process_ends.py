"""Where a text shows that a process has ended by its own mistake."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.went_on.process_ends import never_began, process_ends, speaks_of_many

RAISED = (
    'Traceback (most recent call last):\n  File "train.py", line 9, in {}\n    main()\nValueError: no toys\n'
)
BOX = (
    "╭──────── Traceback (most recent call last) ────────╮\n"
    "│ /toy/train.py:66 in <module>                      │\n"
    "│ ❱ 66 main()                                       │\n"
    "╰───────────────────────────────────────────────────╯\n"
    "ValueError: no toys\n"
)
NO_FILE = "/usr/bin/python3: can't open file 'trian.py': [Errno 2] No such file or directory\n"
USAGE = "usage: toy [-h] config\ntoy: error: the following arguments are required: config\n"


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        (RAISED.format("<module>"), True),
        (RAISED.format("step"), False),
        (BOX, True),
        (BOX.replace("<module>", "step"), False),
        (NO_FILE, True),
        (USAGE, True),
    ],
)
def test_the_next_process_writes_behind_an_end(text: str, sure: bool) -> None:
    (end,) = process_ends(b"the toys are loaded\n" + text.encode() + b"the toys are loaded\n")
    assert (end.number, end.sure) == (2 + text.count("\n"), sure)


def test_ends_come_in_their_order_and_a_chain_is_one() -> None:
    handled = "\nDuring handling of the above exception, another exception occurred:\n\n"
    text = BOX + RAISED.format("<module>") + handled + RAISED.format("<module>") + NO_FILE
    assert [end.number for end in process_ends(text.encode())] == [6, 17, 18]


def test_an_exception_that_a_hook_could_not_show_is_printed_twice_by_one_process() -> None:
    hook = "Error in sys.excepthook:\n" + RAISED.format("toy_hook") + "\nOriginal exception was:\n"
    text = RAISED.format("<module>") + hook + RAISED.format("<module>")
    assert [end.number for end in process_ends(text.encode())] == [1 + text.count("\n")]


def test_a_message_of_many_lines_parts_no_chain() -> None:
    handled = "  - wings\n\nDuring handling of the above exception, another exception occurred:\n\n"
    text = RAISED.format("<module>") + handled + RAISED.format("<module>")
    assert [end.number for end in process_ends(text.encode())] == [13]


@pytest.mark.parametrize(("edge", "inner"), [("=" * 60, "-" * 60), ("*" * 39, "=" * 39)])
def test_the_report_of_torchrun_is_its_exception_s_message(edge: str, inner: str) -> None:
    name = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
    report = f"{edge}\ntoy_train.py FAILED\n{inner}\nRoot Cause:\n[0]:\n  exitcode  : 1 (pid: 41)\n{edge}\n"
    text = RAISED.format("<module>").replace("ValueError: no toys", name) + report
    (end,) = process_ends(text.encode() + b"the toys are loaded\n")
    assert (end.number, end.sure) == (1 + text.count("\n"), True)
    (end,) = process_ends(text.replace(name, "ToyError: ").encode())
    assert end.number == 5


def test_what_ray_lists_of_a_node_short_of_memory_is_its_exception_s_message() -> None:
    words = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."
    listed = (
        "Memory on the node (IP: 10.0.0.7, ID: 41ab) was 30.00GB / 31.00GB\n"
        "PID\tMEM(GB)\tCOMMAND\n88\t29.00\tray::Toy.train\n"
        "Refer to the documentation on how to address the out of memory issue\n"
    )
    text = RAISED.format("<module>").replace("ValueError: no toys", words) + listed
    (end,) = process_ends(text.encode() + b"the toys are loaded\n")
    assert (end.number, end.sure) == (1 + text.count("\n"), True)
    (end,) = process_ends(text.replace("running low on memory", "out of toys").encode())
    assert end.number == 5


def test_a_message_that_holds_a_worker_s_traceback_ends_with_it() -> None:
    passed_on = RAISED.format("<module>") + "Original " + RAISED.format("forward")
    (end,) = process_ends(passed_on.encode() + b"the toys are loaded\n")
    assert (end.number, end.sure) == (9, True)


@pytest.mark.parametrize(
    "text",
    ["  " + RAISED.format("<module>"), "see: " + NO_FILE, "the toy's error: argument, counter-argument\n"],
)
def test_what_is_cited_ends_nothing(text: str) -> None:
    assert list(process_ends(text.encode())) == []


def test_a_script_that_refused_its_command_line_within_another_s_work_never_began() -> None:
    line = b"train_toys.py: error: unrecognized arguments: --red"
    usage = b"usage: train_toys.py [-h]\n" + line + b"\n"
    text = b"the night's work begins\n" + usage + b"the report is sent\n"
    assert never_began(text, line)
    assert not never_began(text + b"python train_toys.py\n", line)
    assert not never_began(text, b"toyd: error: unrecognized arguments: --red")
    assert not never_began(b"nohup: ignoring input\n" + usage + b"the toys are loaded\n", line)
    assert not never_began(b"", line), "the text is too long to be read at once"


def test_a_warning_of_leaked_semaphores_speaks_of_no_other_processes() -> None:
    leaked = b"/py/multiprocessing/{}.py:7: UserWarning: resource_tracker: There appear to be 7 leaked toys\n"
    assert not speaks_of_many(leaked.replace(b"{}", b"resource_tracker"))
    assert speaks_of_many(leaked.replace(b"{}", b"pool"))


def test_a_library_that_is_loaded_or_installed_speaks_of_no_ranks() -> None:
    assert not speaks_of_many(b"[=== Module cuda/12.1/nccl/2.19 loaded ===]\nnvidia-nccl-cu12==2.20.5\n")
    assert speaks_of_many(b"NCCL version 2.20.5+cuda12.4\n")


def test_a_field_named_learning_to_rank_is_no_rank() -> None:
    assert not speaks_of_many(b"reads 'A toy paper on Learning to Rank with 7 wheels'\n")
    assert speaks_of_many(b"sends a toy to rank 7\n")
