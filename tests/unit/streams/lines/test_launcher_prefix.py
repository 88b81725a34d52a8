"""What launchers, containers and log collectors print in front of a line is no part of its own words."""

from __future__ import annotations

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from midwatch.streams.lines.launcher_prefix import FRONT, front

PREFIXES = (
    "[rank0]: ",
    "[default3]:",
    "0: ",
    " 12: ",
    "[1,0]<stderr>:",
    "[1,mpirank:0,algo-1]<stdout>:",
    "[0]<stderr>:",
    "Fri Mar  2 11:52:40 2026[0]<stderr>:",
    "(ToyWorker pid=4021, ip=10.0.0.3) ",
    "(toy-task, rank=1, pid=4021, ip=10.0.0.3) ",
    "(autoscaler +1m2s) ",
    "(raylet) ",
    "(raylet, ip=10.0.0.3) ",
    "trainer-1  | ",
    "gpu-07: ",
    "10.0.0.12: ",
    "[pod/toy-worker-0/trainer] ",
    "[+   77.125] ",
    "[+0:01:17] ",
    "2026-03-02T11:52:40.123456789Z ",
    "2026-03-02T11:52:40.123456789Z stderr F ",
    "[2026-03-02 11:52:40] ",
    "2026-03-02 11:52:40,123 ",
    "2026-03-02 11:52:40.123456: ",
    "Mar  2 11:52:40 gpu-07 train.sh[4021]: ",
    "Mar 02 11:52:40 ",
    "[11:52:40] ",
    "toy-worker-0 pytorch ",
    "toy-x7k2p main ",
    '{container="pytorch", pod="toy-0"} ',
    '2026-03-02T11:52:40+02:00 {container="toy",pod="toy-0"} ',
    "ERROR 2026-03-02 11:52:40 +0000 workerpool0-0 ",
    "INFO\t2026-03-02 11:52:40 +0000\tworkerpool1-3\t",
    "2026/03/02 11:52:40 ",
    "2026-03-02 11:52:40.123 CET ",
    "2026-03-02T11:52:40.123Z\t",
    "2026-03-02T11:52:40.123000+00:00 toy-job/algo-1-1680000000 ",
    "2026-03-02T11:52:40.123000+00:00 toy-train/default/0a1b2c3d4e5f60718293a4b5c6d7e8f9 ",
    "gpu07.toys.example.edu: ",
    "ip-10-0-0-12.eu-toy-1.internal: ",
    "x3006c0s13b1n0.hsn.cm.toys.example.gov 3: ",
    "trainer/0 ",
    "toy_8b_pretrain/0 [default0]:",
    "[2026-03-02, 11:52:40 UTC] {subprocess.py:93} INFO - ",
    "[2026-03-02 11:52:40,118] {docker_operator.py:219} INFO - ",
    "[2026-03-02T11:52:40.123+0000] {logging_mixin.py:188} WARNING - ",
    "[2026-03-02 11:52:40,123: WARNING/ForkPoolWorker-3] ",
    "Mon Mar  2 11:52:40 2026<stderr>:",
    "[2026-03-02T11:52:40.123+0000] {pod_manager.py:418} INFO - [base] ",
    "[2026-03-02T11:52:40.123456Z] 9b0f4d1b || INFO: ",
    "[2026-03-02T11:52:40.123456Z] [rank=3] || ",
    "2026-03-02T11:52:40.123456Z 01O ",
    "train (whale, 2)\tRun the toy\t2026-03-02T11:52:40.1234567Z ",
    "2026-03-02 11:52:40.123 [77/train/3 (pid 4188)] ",
    "11:52:40.123 | INFO    | Flow run 'toy-whale' - ",
    "[pod/toy-worker-0/trainer] 2026-03-02T11:52:40.123456789Z ",
    "3: [rank3]: ",
    "2026-03-02 11:52:40,123 - INFO - ",
    "2026-03-02 11:52:40,123 - toy.runner - INFO - ",
    "2026-03-02 11:52:40.123 | INFO     | toy.runner:stream:41 - ",
    "[2026-03-02 11:52:40,123][toy.runner][INFO] - ",
    "INFO:toy.runner:",
    "[INFO] ",
)


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    "words", ["ToyError: gone", '  File "toy.py", line 5, in main', " 45%|#### ", "Step 3: x"]
)
def test_a_prefix_ends_where_the_lines_own_words_begin(prefix: str, words: str) -> None:
    line = f"{prefix}{words}".encode()
    assert line[front(line) :].lstrip() == words.lstrip().encode()


@pytest.mark.parametrize(
    "line",
    [
        "ToyError: gone",
        "step 3: fine",
        "Epoch 3: 45%|####",
        "[train] 3 of 9",
        "(of 3) fine",
        "Map (workers=8): 9%|",
        "toy-worker-0 failed ToyError: gone",
        "toy worker ToyError: gone",
        "train2.py: ToyError: gone",
        "toys3.connectionpool: ToyError: gone",
        "toys/3: ToyError: gone",
        "1/3 done",
        "multi-node training ToyError: gone",
        '{"container": "pytorch"} ToyError: gone',
        "{toy=3} ToyError: gone",
        "ERROR 2026-03-02 11:52:40 +0000 toypool ToyError: gone",
    ],
)
def test_a_lines_own_words_are_no_prefix(line: str) -> None:
    assert front(line.encode()) == 0


_PIECES = st.sampled_from(
    (*PREFIXES, "ToyError: gone", " ", "3", ": ", "[", "] ", "(", ") ", "| ", "pid=1", "é")
)


@given(st.lists(_PIECES, max_size=6).map("".join))
def test_rules_and_code_see_the_same_prefix(text: str) -> None:
    line = text.encode()[:200]
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    assert re2.compile(f"^{FRONT}".encode(), options).match(line).end() == front(line)
