"""What `midwatch replay` of a large log costs: seconds, processor seconds, and memory.

    python bench/replay.py [--megabytes N]        writes bench/results/replay-large.{json,md}
    python bench/replay.py --beside TREE          writes bench/results/replay-beside.{json,md}

Each log holds progress lines of one kind. Memory is the largest sum over the command's processes, taken from
/proc every 50 ms: shared pages count once (Pss). `--beside` measures another checkout in turns with this one,
so other work on the machine slows both. Its verdicts must be the same.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
HERE = Path(__file__).parent.parent


def _dated(step: int, chance: random.Random) -> str:
    clock = f"2026-11-20 {step // 3600 % 24:02d}:{step // 60 % 60:02d}:{step % 60:02d}"
    return f"[{clock}] {_undated(step, chance)}"


def _undated(step: int, chance: random.Random) -> str:
    return (
        f" iteration {step:8d}/ 1000000 | consumed samples: {step * 512:12d} | "
        f"elapsed time per iteration (ms): {chance.gauss(900, 20):.1f} | "
        f"lm loss: {chance.gauss(2.3, 0.1):.6E} | loss scale: 1.0 | grad norm: {chance.random():.3f} |"
    )


def _dictionary(step: int, chance: random.Random) -> str:
    loss, norm, rate = chance.gauss(2.3, 0.1), chance.random(), chance.random() * 1e-5
    place = f"'learning_rate': {rate:.6e}, 'epoch': {step / 1000:.3f}"
    return f"{{'loss': {loss:.4f}, 'grad_norm': {norm:.6f}, {place}}}"


def _bar(step: int, _chance: random.Random) -> str:
    # The rules of steps, of epochs and of training's own bars read such a line.
    return (
        f"Training Progress: {step // 3000:3d}%|{'#' * (step // 30000):10}| {step}/300000 [00:{step % 60:02d}"
        f"<1:41:16,  3.04s/it, epoch={step}, test_accuracy=46.1900%, test_loss=2.2934, train_loss=2.2953]"
    )


KINDS: dict[str, Callable[[int, random.Random], str]] = {
    "steps with a printed time": _dated,
    "steps without a printed time": _undated,
    "a dictionary for each step": _dictionary,
    "a bar that several rules read": _bar,
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one replay. `memory`: MB of all its processes at their largest."""

    seconds: float
    processor_seconds: float
    memory: float


def _write(file: Path, size: int, line: Callable[[int, random.Random], str]) -> int:
    chance = random.Random(7)  # noqa: S311  # the same lines in every run, nothing secret
    step = 0
    with file.open("w") as out:
        while out.tell() < size:
            step += 1
            out.write(line(step, chance) + "\n")
    return step


def _family(pid: int) -> Iterator[int]:
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from _family(int(child))


def _memory(pid: int) -> float:
    total = 0
    for each in _family(pid):
        try:
            rollup = Path(f"/proc/{each}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total / 1000


def _replay(tree: Path, file: Path) -> tuple[Cost, dict[str, object]]:
    rooms = ("streams", "rules", "agents", "shippers")
    environment = {**os.environ, "PYTHONPATH": ":".join(str(tree / room) for room in rooms)}
    with tempfile.TemporaryFile() as out:
        began, most = time.perf_counter(), 0.0
        process = subprocess.Popen(
            [sys.executable, "-m", "midwatch", "replay", "--json", str(file)],
            stdout=out, stderr=subprocess.DEVNULL, env=environment, cwd=file.parent,
        )  # fmt: skip
        while True:
            done, _, usage = os.wait4(process.pid, os.WNOHANG)
            if done:
                break
            most = max(most, _memory(process.pid))
            time.sleep(0.05)
        seconds = time.perf_counter() - began
        out.seek(0)
        answer = json.load(out)
    return Cost(round(seconds, 2), round(usage.ru_utime + usage.ru_stime, 2), round(most, 1)), answer


def _page(result: dict[str, object], rows: list[dict[str, object]]) -> str:
    table = [
        f"| {row['kind']} | {row['lines']:,} | {row['tree']} | {row['seconds']} | {row['processor_seconds']} "
        f"| {row['memory']} |"
        for row in rows
    ]
    return "\n".join(
        [
            "# Replay of a large log",
            "",
            f"{result['megabytes']} MB of progress lines; {result['cores']} cores at load {result['load']}; "
            f"Python {result['python']}.",
            "The processor's seconds compare best: other work may have run beside it. Written by",
            "`python bench/replay.py`.",
            "",
            "| log | lines | | seconds | processor seconds | MB of memory |",
            "|---|---|---|---|---|---|",
            *table,
            "",
        ]
    )


def main() -> None:
    """Write both files. Fails if two trees give different answers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=111)
    parser.add_argument("--beside", type=Path, help="another checkout, such as the last release")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    trees = {"this version": HERE} | ({"beside it": arguments.beside} if arguments.beside else {})
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as place:
        for kind, line in KINDS.items():
            file = Path(place, "train.log")
            lines = _write(file, arguments.megabytes * 1_000_000, line)
            costs: dict[str, list[Cost]] = {name: [] for name in trees}
            answers = []
            for _ in range(arguments.rounds):
                for name, tree in trees.items():
                    cost, answer = _replay(tree, file)
                    costs[name].append(cost)
                    answers.append(answer)
            if any(answer != answers[0] for answer in answers):
                sys.exit(f"the answers for {kind} differ")
            for name, taken in costs.items():
                least = min(taken, key=lambda cost: cost.seconds)
                rows.append({"kind": kind, "lines": lines, "tree": name, **asdict(least)})
    result = {
        "megabytes": arguments.megabytes,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "rows": rows,
    }
    name = "replay-beside" if arguments.beside else "replay-large"
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    page = _page(result, rows)
    (RESULTS / f"{name}.md").write_text(page)
    sys.stdout.write(page)


if __name__ == "__main__":
    main()
