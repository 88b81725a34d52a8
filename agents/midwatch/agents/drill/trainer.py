"""A small real training that fails on command: `python trainer.py --checkpoint-dir DIR --fault nccl@25:1`.

Each rank is one process. It fits a linear model by SGD and averages gradients over TCP. It writes real
checkpoints, and resumes from the latest complete one. Its lines have the form of Megatron-LM, PyTorch and
NCCL. It needs the standard library only.

Without SLURM it starts `--ranks` processes, each with its own `rank_N.log`. In a SLURM step, or with RANK
and WORLD_SIZE set, it is one rank. `--fault KIND[@ITERATION][:ATTEMPT]` may be repeated. Without ATTEMPT
the fault strikes in every attempt. Attempt N is the N-th `start` line of `ledger.jsonl` in the checkpoint
directory. That ledger is the judge of a drill: the training writes it, and nothing that watches the
training does.

- nccl: one rank hangs, the others time out in a collective and abort
- oom: one rank runs out of GPU memory, the others time out after it
- exception, segv, sigkill: one rank ends that way, the others time out after it
- hang: every rank lives, and none prints
- eval: a long, legal evaluation without an iteration line
- spike: the loss jumps for a few iterations and recovers
- torn: rank 0 is killed in the middle of a checkpoint, and half of the checkpoint stays
- silent: all ranks end with exit code 1 and print nothing
- exit0: all ranks end with exit code 0 before the last iteration
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import json
import math
import os
import random
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import NamedTuple

if not __package__:  # run by path: the namespace's folder is three levels above this one
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from midwatch.agents.drill import shards
from midwatch.agents.drill.group import CollectiveTimeoutError, Group, die_of_timeout, say, stamp
from midwatch.agents.drill.launcher import launch
from midwatch.agents.drill.ledger import note, open_attempt

FAULTS = ("nccl", "oom", "exception", "segv", "sigkill", "hang", "eval", "spike", "torn", "silent", "exit0")
FEATURES, SAMPLES, LEARNING_RATE, NOISE = 16, 16, 0.02, 1.0
SPIKE_ITERATIONS, SPIKE_NOISE = 4, 8.0
SUCCESS, FAILURE = 0, 1
STDOUT = Path("-")
ONE_RANK = ("nccl", "oom", "exception", "segv", "sigkill")


class Fault(NamedTuple):
    kind: str
    iteration: int | None
    attempt: int | None


def fault(text: str) -> Fault:
    """Reads `KIND[@ITERATION][:ATTEMPT]`; an absent iteration means the middle of the run."""
    head, _, attempt = text.partition(":")
    kind, _, iteration = head.partition("@")
    if kind not in FAULTS:
        raise argparse.ArgumentTypeError(f"{kind!r} is none of {', '.join(FAULTS)}")
    try:
        return Fault(kind, int(iteration) if iteration else None, int(attempt) if attempt else None)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not KIND[@ITERATION][:ATTEMPT]") from None


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="trainer.py"
    )
    add = parser.add_argument
    add("--checkpoint-dir", type=Path, required=True)
    add(
        "--log-dir",
        type=Path,
        help="for rank_N.log; '-' is stdout [default: logs/ in the checkpoint directory; in a step, stdout]",
    )
    add("--ranks", type=int, default=8)
    add("--iterations", type=int, default=60)
    add("--iteration-ms", type=float, default=50.0)
    add("--save-every", type=int, default=10)
    add("--log-every", type=int, default=1)
    add(
        "--eval-every",
        type=int,
        default=0,
        help="iterations between evaluations; 0: only by the fault `eval`",
    )
    add("--eval-ms", type=float, default=10_000.0, help="how long the evaluation of the fault `eval` takes")
    add("--collective-timeout-ms", type=int, default=3000)
    add("--seed", type=int, default=1234)
    add("--fault", type=fault, action="append", default=[], metavar="KIND[@ITERATION][:ATTEMPT]")
    add("--fault-rank", type=int, default=3, help="the rank that a fault of one rank strikes")
    add(
        "--progress-ranks",
        default="last",
        help="ranks that print iteration lines: last (as Megatron), all, or 0,3",
    )
    add("--save-on-term", action="store_true", help="on SIGTERM save and end with 0")
    return parser.parse_args()


class OutOfMemoryError(RuntimeError):
    """The error that PyTorch raises when its allocator finds no memory on the GPU."""

    __module__ = "torch"


class Trainer:
    """One rank of the training."""

    def __init__(self, options: argparse.Namespace, rank: int, world: int, meeting: Path) -> None:
        self.options, self.rank, self.world = options, rank, world
        self.directory: Path = options.checkpoint_dir
        self.group = Group(rank, world, meeting, options.collective_timeout_ms / 1000)
        resumed = None
        if rank == 0:
            step, weights = shards.load(self.directory, FEATURES)
            resumed = [step, weights, open_attempt(self.directory, step + 1)]
        step, weights, attempt = self.group.gather(resumed)[0]
        self.step: int = step
        self.weights: list[float] = weights
        self.faults = [
            (item.kind, item.iteration or options.iterations // 2)
            for item in options.fault
            if item.attempt in (None, attempt)
        ]
        chosen = options.progress_ranks
        ranks = {"last": [world - 1], "all": list(range(world))}.get(chosen) or map(int, chosen.split(","))
        self.prints = rank in ranks
        random_ = random.Random(options.seed)  # noqa: S311 - the data of a toy, nothing secret
        self.truth = [random_.gauss(0, 1) for _ in range(FEATURES)]
        self.terminate = False
        signal.signal(signal.SIGTERM, self._on_term)

    def _on_term(self, *_: object) -> None:
        if self.rank == 0 and not self.terminate:
            note(self.directory, "term", step=self.step)
        self.terminate = True
        if not self.options.save_on_term:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)

    def run(self) -> int:
        options = self.options
        if self.rank == 0 and self.step:
            where = f"checkpoint from {self.directory} [ t 1/1, p 1/1 ] at iteration {self.step}"
            say(f"  successfully loaded {where}")
        elif self.rank == 0:
            tracker = self.directory / "latest_checkpointed_iteration.txt"
            say(f"WARNING: could not find the metadata file {tracker}")
            say("    will not load any checkpoints and will start from random")
        if self.rank == 0:
            say(f"[before the start of training step] datetime: {stamp('%Y-%m-%d %H:%M:%S')} ")
        while self.step < options.iterations:
            began = time.monotonic()
            current = self.step + 1
            for kind in [kind for kind, iteration in self.faults if iteration == current]:
                self.strike(kind, current)
            loss, norm, ending = self.train(current)
            self.step = current
            time.sleep(max(0.0, options.iteration_ms / 1000 - (time.monotonic() - began)))
            if self.prints and current % options.log_every == 0:
                self.progress(loss, norm, (time.monotonic() - began) * 1000)
            torn = ("torn", current) in self.faults
            if torn or ending or current % options.save_every == 0 or current == options.iterations:
                self.save(torn)
            if ending:
                if self.rank == 0:
                    say("exiting program after receiving SIGTERM.")
                return SUCCESS
            if options.eval_every and current % options.eval_every == 0:
                self.evaluate(options.iteration_ms)
        if self.rank == 0:
            say(f"[after training is done] datetime: {stamp('%Y-%m-%d %H:%M:%S')} ")
            note(self.directory, "done", step=self.step, weights=self.weights)
        return SUCCESS

    def gradient(self, name: str, noise: float) -> tuple[float, list[float]]:
        """Mean squared error of one batch of this rank, and its gradient."""
        draw = random.Random(f"{self.options.seed}/{self.rank}/{name}").gauss  # noqa: S311 - toy data
        total, slope = 0.0, [0.0] * FEATURES
        for _ in range(SAMPLES):
            x = [draw(0, 1) for _ in range(FEATURES)]
            target = math.fsum(a * b for a, b in zip(self.truth, x, strict=True)) + draw(0, noise)
            error = math.fsum(a * b for a, b in zip(self.weights, x, strict=True)) - target
            total += error * error / SAMPLES
            slope = [s + 2 * error * value / SAMPLES for s, value in zip(slope, x, strict=True)]
        return total, slope

    def train(self, current: int) -> tuple[float, float, bool]:
        """One step of SGD: loss, gradient norm, and whether a rank got SIGTERM."""
        spiked = any(k == "spike" and 0 <= current - i < SPIKE_ITERATIONS for k, i in self.faults)
        part = self.gradient(str(current), SPIKE_NOISE if spiked else NOISE)
        parts = self.group.gather([*part, self.terminate])
        loss = math.fsum(part[0] for part in parts) / self.world
        mean = [math.fsum(column) / self.world for column in zip(*(part[1] for part in parts), strict=True)]
        norm = math.sqrt(math.fsum(g * g for g in mean))
        clip = min(1.0, 4.0 / norm) if norm else 1.0
        self.weights = [w - LEARNING_RATE * clip * g for w, g in zip(self.weights, mean, strict=True)]
        return loss, norm, any(part[2] for part in parts)

    def progress(self, loss: float, norm: float, elapsed_ms: float) -> None:
        size = self.world * SAMPLES
        say(
            f" [{stamp()}] iteration {self.step:8d}/{self.options.iterations:8d} |"
            f" consumed samples: {self.step * size:12d} |"
            f" elapsed time per iteration (ms): {elapsed_ms:.1f} | learning rate: {LEARNING_RATE:.6E} |"
            f" global batch size: {size:5d} | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: {norm:.3f} |"
            " number of skipped iterations:   0 | number of nan iterations:   0 |"
        )

    def evaluate(self, duration_ms: float) -> None:
        if self.rank == 0:
            say(f"Evaluating on {self.world * SAMPLES} samples")
        time.sleep(duration_ms / 1000)
        parts = self.group.gather(self.gradient("validation", NOISE)[0])
        if self.rank == self.world - 1:
            loss = math.fsum(parts) / self.world
            text = f" validation loss at iteration {self.step} | lm loss value: {loss:.6E} |"
            text += f" lm loss PPL: {math.exp(min(20, loss)):.6E} | "
            say("-" * (len(text) + 1))
            say(text)
            say("-" * (len(text) + 1))

    def save(self, torn: bool) -> None:
        final = self.directory / f"step_{self.step}"
        fresh = self.directory / f".step_{self.step}.saving"
        if self.rank == 0:
            say(f"saving checkpoint at iteration {self.step:7d} to {self.directory} in torch_dist format")
            shards.begin(final if torn else fresh)
        self.group.gather("begun")
        content = json.dumps({i: self.weights[i] for i in range(self.rank, FEATURES, self.world)}).encode()
        if torn and self.rank == 0:  # as a killed trainer leaves it that writes under the final name
            shards.durable(final / "shard_0.json", content[: len(content) // 2])
            note(self.directory, "fault", kind="torn", step=self.step)
            os.kill(os.getpid(), signal.SIGKILL)
        folder = final if torn else fresh
        written = self.group.gather(shards.durable(folder / f"shard_{self.rank}.json", content))
        if self.rank == 0:
            shards.publish(fresh, final, self.step, written)
            note(self.directory, "save", step=self.step)
            place = f"{self.step:7d} to {self.directory} [ t 1/1, p 1/1 ]"
            say(f"  successfully saved checkpoint from iteration {place}")

    def strike(self, kind: str, current: int) -> None:
        """The fault itself, on its ranks. `train` makes the fault `spike`, and `save` makes `torn`."""
        noted_by = self.options.fault_rank % self.world if kind in ONE_RANK else 0
        if self.rank == noted_by and kind != "torn":
            note(self.directory, "fault", kind=kind, step=current)
        if kind in ONE_RANK and self.rank != noted_by:
            return
        match kind:
            case "eval":
                self.evaluate(self.options.eval_ms)
            case "nccl" | "hang":
                while True:
                    time.sleep(3600)
            case "silent" | "exit0":
                self.group.gather(kind)  # all ranks meet first, so that none lives to print an error
                os._exit(FAILURE if kind == "silent" else SUCCESS)
            case "sigkill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "segv":
                faulthandler.enable()
                ctypes.string_at(0)
            case "exception":
                raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (512x4096 and 1024x4096)")
            case "oom":
                raise OutOfMemoryError(
                    f"CUDA out of memory. Tried to allocate 2.50 GiB. GPU {self.rank} has a total "
                    "capacity of 79.10 GiB of which 1.06 GiB is free. Including non-PyTorch memory, this "
                    "process has 78.03 GiB memory in use. Of the allocated memory 75.21 GiB is allocated by "
                    "PyTorch, and 1.44 GiB is reserved by PyTorch but unallocated."
                )


def be_one_rank(options: argparse.Namespace, rank: int, world: int, meeting: Path) -> int:
    if parent := os.environ.get("MIDWATCH_DRILL_PARENT"):
        ctypes.CDLL(None).prctl(
            1, signal.SIGKILL
        )  # PR_SET_PDEATHSIG: a killed launcher leaves no rank behind
        if os.getppid() != int(parent):
            return FAILURE
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # an abort on purpose is worth no core file
    trainer = Trainer(options, rank, world, meeting)
    try:
        return trainer.run()
    except CollectiveTimeoutError as late:
        die_of_timeout(trainer.group, late, FEATURES)
    except Exception:
        for line in traceback.format_exc().splitlines():
            say(f"[rank{rank}]: {line}", error=True)
        return FAILURE


def main() -> int:
    options = arguments()
    directory = options.checkpoint_dir = options.checkpoint_dir.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    seen = os.environ.get
    if "RANK" in os.environ:
        meeting = Path(seen("MIDWATCH_DRILL_MEETING") or directory / ".meeting")
        return be_one_rank(options, int(seen("RANK", "0")), int(seen("WORLD_SIZE", "1")), meeting)
    if "SLURM_STEP_ID" in os.environ:
        run = "-".join(seen(f"SLURM_{name}", "0") for name in ("JOB_ID", "STEP_ID", "RESTART_COUNT"))
        rank = int(seen("SLURM_PROCID", "0"))
        if options.log_dir and options.log_dir != STDOUT:
            options.log_dir.mkdir(parents=True, exist_ok=True)
            log = os.open(options.log_dir / f"rank_{rank}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            os.dup2(log, sys.stdout.fileno())
            os.dup2(log, sys.stderr.fileno())
        return be_one_rank(options, rank, int(seen("SLURM_NTASKS", "1")), directory / f".meeting-{run}")
    return launch(
        Path(__file__).resolve(),
        options.ranks,
        None if options.log_dir == STDOUT else (options.log_dir or directory / "logs").resolve(),
        meeting=directory / f".meeting-{os.getpid()}",
        patience_s=1.5 * options.collective_timeout_ms / 1000 + 0.5,
        quiet=any(item.kind == "silent" for item in options.fault),
    )


if __name__ == "__main__":
    sys.exit(main())
