"""How many verdicts change with what launchers print in front: `python -m bench.prefixes FOLDER`.

Each labelled log of the folder is judged as it is, and again with a prefix in front of each line. Labels are
not asked: a verdict counts as changed if its family, its root line or its action is another one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from midwatch.agents.cli.rules.score import judge_of_logs
from midwatch.agents.replay.scoring import Prediction

FILES = ("dev.jsonl", "batch-1.jsonl", "batch-2.jsonl", "batch-3.jsonl")
_LEFT_OUT = "[...]"

Prefix = Callable[[int], str]


def _always(text: str) -> Prefix:
    return lambda _: text


def _at(form: str, before: str = "", behind: str = "") -> Prefix:
    """A prefix with a clock: a second later on each line."""
    return lambda line: f"{before}{datetime.fromtimestamp(1_772_452_800 + line, UTC).strftime(form)}{behind}"


PREFIXES: dict[str, Prefix] = {
    "`srun --label`": _always("0: "),
    "the same, aligned": _always(" 3: "),
    "`torchrun --tee`": _always("[default0]:"),
    "torch's rank": _always("[rank0]: "),
    "`mpirun --tag-output`": _always("[1,0]<stderr>:"),
    "`mpirun --timestamp-output`": _at("%a %b %d %H:%M:%S %Y<stderr>:"),
    "SageMaker": _always("[1,mpirank:0,algo-1]<stderr>:"),
    "Horovod": _always("[0]<stderr>:"),
    "pdsh": _always("gpu-7: "),
    "pdsh, by address": _always("10.0.0.12: "),
    "pdsh, a name with its domain": _always("gpu07.toys.example.edu: "),
    "`mpiexec --label`": _always("x3006c0s13b1n0.toys.example.gov 3: "),
    "TorchX, NeMo-Run": _always("trainer/0 "),
    "Ray, copied without its escapes": _always("[36m(TrainWorker pid=4021)[0m "),
    "Ray": _always("(TrainWorker pid=4021, ip=10.0.0.3) "),
    "SkyPilot": _always("(worker1, rank=1, pid=4021, ip=10.0.0.3) "),
    "Docker Compose": _always("trainer-1  | "),
    "Kaggle": lambda line: f"{1.5 * line + 3:.1f}s {line + 1} ",
    "`kubectl logs --prefix`": _always("[pod/toy-worker-0/trainer] "),
    "`kubectl logs --timestamps`": _at("%Y-%m-%dT%H:%M:%S.123456789Z "),
    "both": _at("%Y-%m-%dT%H:%M:%S.123456789Z ", "[pod/toy-worker-0/trainer] "),
    "a container's log file": _at("%Y-%m-%dT%H:%M:%S.123456789Z stderr F "),
    "journald": _at("%b %d %H:%M:%S", "", " gpu-07 train.sh[4021]: "),
    "`ts`": _at("%b %d %H:%M:%S "),
    "a program in Go": _at("%Y/%m/%d %H:%M:%S "),
    "an export of CloudWatch": _at("%Y-%m-%dT%H:%M:%S.123Z\t"),
    "`aws logs tail`": _at("%Y-%m-%dT%H:%M:%S.123000+00:00 toy-job/algo-1-1680000000 "),
    "Airflow": _at("[%Y-%m-%d, %H:%M:%S UTC] {subprocess.py:93} INFO - "),
    "Airflow, of a task's stderr": _at("[%Y-%m-%dT%H:%M:%S.123+0000] {logging_mixin.py:188} WARNING - "),
    "Determined": _at("[%Y-%m-%dT%H:%M:%S.123456Z] 9b0f4d1b || INFO: "),
    "`gh run view --log`": _at("train\tRun the toy\t%Y-%m-%dT%H:%M:%S.1234567Z "),
    "GitLab": _at("%Y-%m-%dT%H:%M:%S.123456Z 01O "),
    "Metaflow": _at("%Y-%m-%d %H:%M:%S.123 [77/train/3 (pid 4188)] "),
    "Polyaxon": _at("%Y-%m-%d %H:%M:%S UTC worker.0 -- "),
    "Prefect": _at("%H:%M:%S.123 | INFO    | Flow run 'toy-whale' - "),
    "a logger of Python's": _at("%Y-%m-%d %H:%M:%S,123 - INFO - "),
    "loguru": _at("%Y-%m-%d %H:%M:%S.123 | INFO     | toy.runner:stream:41 - "),
    "Hydra": _at("[%Y-%m-%d %H:%M:%S,123][toy.runner][INFO] - "),
    "Python's own form": _always("INFO:toy.runner:"),
    "Celery": _at("[%Y-%m-%d %H:%M:%S,123: WARNING/ForkPoolWorker-3] "),
    "a clock in brackets": _at("[%Y-%m-%d %H:%M:%S] "),
    "an hour in brackets": _at("[%H:%M:%S] "),
}


def main() -> None:
    """Judge all logs once for each prefix, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, default=Path("bench/results/prefixes.md"))
    arguments = parser.parse_args()
    logs = [
        str(json.loads(line)["log"])
        for name in FILES
        for line in (arguments.folder / name).read_text(encoding="utf-8").split("\n")
        if line.strip()
    ]
    judge = judge_of_logs()
    bare = [judge(log) for log in logs]
    rows = []
    for name, prefix in PREFIXES.items():
        pairs = list(zip(bare, (judge(with_prefix(log, prefix)) for log in logs), strict=True))
        changed = [sum(test(*pair) for pair in pairs) for test in (differs, family, root_line, action)]
        shown = prefix(0).replace("|", r"\|")
        rows.append(f"| {name} | `{shown}` | " + " | ".join(map(str, changed)) + " |")
    arguments.output.write_text("\n".join([*_head(len(logs)), *rows, ""]), encoding="utf-8")


def _head(logs: int) -> Iterator[str]:
    yield "# Verdicts behind what launchers print in front of each line\n"
    yield f"{datetime.now(UTC).date()}; {logs} labelled logs, each judged as it is and with one prefix in"
    yield "front of each line. Counted are the logs whose verdict is then another one. Labels are not asked."
    yield "Written by `make bench-prefixes LABELS=FOLDER`.\n"
    yield "| printed by | prefix | other verdicts | other families | other root lines | other actions |"
    yield "|---|---|---|---|---|---|"


def with_prefix(log: str, prefix: Prefix) -> str:
    """The log with the prefix in front of each line, but for the marks of lines that were left out."""
    return "\n".join(
        line if line.strip() == _LEFT_OUT else f"{prefix(number)}{line}"
        for number, line in enumerate(log.split("\n"))
    )


def differs(bare: Prediction, prefixed: Prediction) -> bool:
    """Whether anything of the verdict is another one."""
    return family(bare, prefixed) or root_line(bare, prefixed) or action(bare, prefixed)


def family(bare: Prediction, prefixed: Prediction) -> bool:
    """Whether the family is another one."""
    return bare.family != prefixed.family


def root_line(bare: Prediction, prefixed: Prediction) -> bool:
    """Whether the root is another line."""
    own = bare.root_line.strip()
    return not prefixed.root_line.strip().endswith(own) or bool(own) != bool(prefixed.root_line)


def action(bare: Prediction, prefixed: Prediction) -> bool:
    """Whether the action is another one."""
    return bare.action != prefixed.action


if __name__ == "__main__":
    main()
