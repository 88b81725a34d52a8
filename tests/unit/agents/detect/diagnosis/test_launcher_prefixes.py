# ruff: noqa: E501  # a line of a log is one line here too
"""A verdict is the same whatever a launcher, a container or a log collector prints around each line."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

PREFIXES = (
    "[default0]:",
    "0: ",
    " 3: ",
    "[1,0]<stderr>:",
    "[1,mpirank:0,algo-1]<stderr>:",
    "(ToyWorker pid=4021, ip=10.0.0.3) ",
    "trainer-1  | ",
    "gpu-07: ",
    "[pod/toy-worker-0/trainer] ",
    "trainer/0 ",
    "gpu07.toys.example.edu: ",
    "x3006c0s13b1n0.hsn.cm.toys.example.gov 3: ",
)
CLOCKS = (
    "2026-03-02T11:52:40.123456789Z ",
    "Mar  2 11:52:40 gpu-07 train.sh[4021]: ",
    "Mar 02 11:52:40 ",
    "[11:52:40] ",
    "[pod/toy-worker-0/trainer] 2026-03-02T11:52:40.123456789Z ",
    "2026/03/02 11:52:40 ",
    "2026-03-02T11:52:40.123Z\t",
    "2026-03-02T11:52:40.123000+00:00 toy-job/algo-1-1680000000 ",
    "2026-03-02T11:52:40.123000+00:00 toy-train/default/0a1b2c3d4e5f60718293a4b5c6d7e8f9 ",
    "[2026-03-02, 11:52:40 UTC] {subprocess.py:93} INFO - ",
    "[2026-03-02T11:52:40.123+0000] {logging_mixin.py:188} WARNING - ",
    "Mon Mar  2 11:52:40 2026<stderr>:",
    "[2026-03-02T11:52:40.123456Z] 9b0f4d1b || INFO: ",
    "2026-03-02T11:52:40.123456Z 01O ",
    "train (whale, 2)\tRun the toy\t2026-03-02T11:52:40.1234567Z ",
    "2026-03-02 11:52:40.123 [77/train/3 (pid 4188)] ",
    "11:52:40.123 | INFO    | Flow run 'toy-whale' - ",
    "2026-03-02 11:52:40 UTC worker.0 -- ",
    "77.5s 104 ",
    "77.5s\t104\t",
)
LOGGERS = (
    "2026-03-02 11:52:40,123 - INFO - ",
    "2026-03-02 11:52:40.123 | INFO     | toy.runner:stream:41 - ",
    "[2026-03-02 11:52:40,123][toy.runner][INFO] - ",
    "INFO:toy.runner:",
    "[2026-03-02 11:52:40,123: WARNING/ForkPoolWorker-3] ",
)
"""A wrapper that copies each line through its own logger. A line that no logger begins with tells that it does."""
STEPS = "Epoch 3 step 40/900 loss 2.31\nEpoch 3 step 50/900 loss 2.30\n"
HEAD = "Traceback (most recent call last):"
FRAME = '  File "train.py", line 5, in main'
IN_ITS_FRAMES = "what a traceback waited for"
"""The kind of this failure stands in the frames of a block, and a block's lines have one prefix without a clock."""
LOGS = {
    "a traceback": f"{STEPS}{HEAD}\n{FRAME}\n    toy(a)\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
    IN_ITS_FRAMES: f'{STEPS}{HEAD}\n{FRAME}\n    torch.distributed.all_reduce(toy)\n  File "/opt/lib/torch/distributed/distributed_c10d.py", line 911, in all_reduce\n    work.wait()\nRuntimeError: Operation timed out!\n',
    "a place to load from": f'{STEPS}{HEAD}\n{FRAME}\n    toy.load_checkpoint(path)\n  File "/opt/lib/toy/saver.py", line 71, in load_checkpoint\n    with open(path) as file:\nFileNotFoundError: [Errno 2] No such file or directory: toy-2\n',
    "a notebook": f"{STEPS}RuntimeError                              {HEAD}\n<ipython-input-3-4f2a> in <module>\n----> 1 toy.load_state_dict(state)\n\n   1044             raise RuntimeError('Error(s) in loading state_dict for {{}}'.format(\n   1045                 toy))\nRuntimeError: Error(s) in loading state_dict for Toy:\n",
    "native code": f"{STEPS}terminate called after throwing an instance of 'toy::Refused'\n  what():  the toy has no wheels\n",
    "a bar and a kill": " 60%|######    | 1075/1790 [04:04<02:42, 4.40it/s]\n 61%|######    | 1092/1790 [04:08<02:38, 4.40it/s]\nKilled\n",
    "a table": "   0/9      1/700      9.7G       1.2       0.9       1.1       2.2       119\n   0/9      2/700      9.7G       inf       nan       nan       nan       119\n",
    "a drill": f"{STEPS}toy injection: [Errno 28] No space left on device; filler 9 B\ncheckpoint write failed: [Errno 28] No space left on device\n",
    "MPI": "It looks like opal_init failed for some reason; your parallel process is\nlikely to abort.\n\n  opal_shmem_base_select failed\n  --> Returned value -1 instead of OPAL_SUCCESS\n",
    "carets and a watchdog": f"{STEPS}{HEAD}\n{FRAME}\n    toy.backward()\n    ^^^^^^^^^^^^^^[rank1]:[E302 11:52:40.832146912 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600011 milliseconds before timing out.\n",
    "a command within a command": f"++ srun --ntasks=1 toy-info.sh\nsrun: error: gpu-07: task 0: Exited with exit code 1\n+ echo toy\n{STEPS}",
}  # fmt: skip


COPIED = ("a traceback", "a place to load from", "a notebook", "a command within a command")


@pytest.mark.parametrize(
    ("name", "prefix"),
    [(name, prefix) for name in LOGS for prefix in (*PREFIXES, *(CLOCKS if name != IN_ITS_FRAMES else ()))]
    + [(name, prefix) for name in COPIED for prefix in LOGGERS],
)
def test_a_prefix_of_each_line_changes_no_verdict(watch: Watch, name: str, prefix: str) -> None:
    log = LOGS[name]
    bare, prefixed = watch(log), watch("".join(f"{prefix}{line}\n" for line in log.splitlines()))

    def told(line: str) -> str:
        return line.removeprefix(prefix).removeprefix(prefix.lstrip()).strip()

    seen, expected = prefixed.verdict, bare.verdict
    assert (seen.state, seen.error_type, told(seen.root_line)) == (
        expected.state, expected.error_type, told(expected.root_line),
    )  # fmt: skip
    assert prefixed.decision.action == bare.decision.action


@pytest.mark.parametrize("prefix", ["", "[default0]:"])
@pytest.mark.parametrize("name", LOGS)
def test_a_second_line_break_behind_each_line_changes_no_verdict(
    watch: Watch, name: str, prefix: str
) -> None:
    """As where a wrapper prints each line that it read with the line's own break."""
    lines = LOGS[name].splitlines()
    bare = watch("".join(f"{prefix}{line}\n" for line in lines))
    doubled = watch("".join(f"{prefix}{line}\n{prefix}\n" for line in lines))
    assert (doubled.verdict.state, doubled.verdict.error_type, doubled.verdict.root_line) == (
        bare.verdict.state, bare.verdict.error_type, bare.verdict.root_line,
    )  # fmt: skip
    assert doubled.decision.action == bare.decision.action
