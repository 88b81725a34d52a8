"""The drill's training really trains, saves, resumes and fails as it was told."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from house.cases import cases
from midwatch.agents.drill import trainer as script
from processes import wait_for

RANKS = max(5, cases(8))  # rank 3 is the one that faults: others are before and behind it
PATIENT_MS, IMPATIENT_MS = 30_000, 1_500
LOSS = re.compile(r"iteration +(\d+)/ +\d+ \|.* lm loss: ([\d.E+-]+) \|")


class Run:
    """One attempt of the training in a directory of its own, and what it left there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def argv(self, *extra: str) -> list[str]:
        place = ["--checkpoint-dir", str(self.directory), "--log-dir", str(self.directory / "logs")]
        return [sys.executable, str(script.__file__), *place, *extra]

    def start(self, *faults: str, patience_ms: int = IMPATIENT_MS, **options: object) -> tuple[int, str]:
        settings = {"iterations": 24, "iteration_ms": 1, "save_every": 10, "ranks": RANKS} | options
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
        flags += [f"--fault={fault}" for fault in faults]
        argv = self.argv(*flags, f"--collective-timeout-ms={patience_ms}")
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout + done.stderr

    def ledger(self, event: str) -> list[dict[str, Any]]:
        path = self.directory / "ledger.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [record for record in map(json.loads, lines) if record["event"] == event]

    def log(self, rank: int) -> str:
        return (self.directory / "logs" / f"rank_{rank}.log").read_text()

    def losses(self) -> dict[int, float]:
        return {int(step): float(loss) for step, loss in LOSS.findall(self.log(RANKS - 1))}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_a_healthy_run_learns_and_says_so(run: Run) -> None:
    code, _ = run.start(patience_ms=PATIENT_MS, iterations=60)
    losses = run.losses()
    assert code == 0
    assert list(losses) == list(range(1, 61))
    assert losses[60] < losses[1] / 4
    assert "[after training is done] datetime:" in run.log(0)
    assert "successfully saved checkpoint from iteration      60" in run.log(0)
    assert [LOSS.search(run.log(rank)) for rank in range(RANKS - 1)] == [None] * (RANKS - 1)
    assert os.readlink(run.directory / "latest") == "step_60"
    assert (run.directory / "latest_checkpointed_iteration.txt").read_text() == "60"


def test_a_resumed_run_ends_where_an_undisturbed_one_does(run: Run, tmp_path: Path) -> None:
    whole = Run(tmp_path / "whole")
    assert whole.start(patience_ms=PATIENT_MS)[0] == 0
    assert run.start(patience_ms=PATIENT_MS, iterations=10)[0] == 0
    assert run.start(patience_ms=PATIENT_MS)[0] == 0
    first, second = run.ledger("start")
    assert (first["first_step"], second["first_step"]) == (1, 11)
    assert first["logged"] == {}
    assert "iteration       11/" in run.log(RANKS - 1)[second["logged"][f"rank_{RANKS - 1}.log"] :]
    assert "iteration       10/" in run.log(RANKS - 1)[: second["logged"][f"rank_{RANKS - 1}.log"]]
    assert run.ledger("done")[-1]["weights"] == whole.ledger("done")[0]["weights"]


def test_nccl_the_other_ranks_accuse_and_the_stuck_one_is_mute(run: Run) -> None:
    code, launcher = run.start("nccl@14:1")
    watchdog = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum="
    assert code == 1
    assert [watchdog in run.log(rank) for rank in range(RANKS)] == [rank != 3 for rank in range(RANKS)]
    assert run.log(3) == ""
    assert "exitcode: -6" in launcher
    assert "Root Cause (first observed failure)" in launcher
    assert run.ledger("fault")[0]["kind"] == "nccl"
    assert run.start("nccl@14:1", patience_ms=PATIENT_MS)[0] == 0
    assert [start["first_step"] for start in run.ledger("start")] == [1, 11]


def test_oom_the_victim_speaks_first_and_the_others_louder(run: Run) -> None:
    victim = RANKS - 3
    code, _ = run.start("oom@14", fault_rank=victim)
    assert code == 1
    said = run.log(victim)
    assert f"[rank{victim}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB." in said
    assert f"[rank{victim}]: Traceback (most recent call last):" in said
    others = [run.log(rank) for rank in range(RANKS) if rank != victim]
    assert all("taking the entire process down" in text for text in others)
    assert not any("out of memory" in text for text in others)
    first, peer = (run.directory / "logs" / f"rank_{rank}.log" for rank in (victim, RANKS - 1))
    assert first.stat().st_mtime < peer.stat().st_mtime


@pytest.mark.parametrize(
    ("kind", "evidence", "code"),
    [
        ("exception", "[rank3]: RuntimeError: mat1 and mat2 shapes cannot be multiplied", "exitcode: 1"),
        ("segv", "Fatal Python error: Segmentation fault", "exitcode: -11"),
        ("sigkill", "", "exitcode: -9"),
    ],
)
def test_one_rank_ends_in_its_own_way(run: Run, kind: str, evidence: str, code: str) -> None:
    returned, launcher = run.start(f"{kind}@12")
    assert returned == 1
    assert evidence in run.log(3)
    assert f"{code})" in launcher
    assert bool(run.log(3)) == bool(evidence)


def test_silent_nobody_says_why(run: Run) -> None:
    code, launcher = run.start("silent@14")
    text = launcher + "".join(run.log(rank) for rank in range(RANKS))
    assert code == 1
    assert not re.search(r"error|timeout|abort|fail", text, re.IGNORECASE)
    assert "after training is done" not in text


def test_exit0_looks_like_success_and_is_none(run: Run) -> None:
    code, _ = run.start("exit0@14")
    assert code == 0
    assert run.ledger("done") == []
    assert "after training is done" not in run.log(0)


def test_torn_half_a_checkpoint_stays_and_is_not_resumed_from(run: Run) -> None:
    code, _ = run.start("torn@17:1")
    assert code == 1
    assert not (run.directory / "step_17" / "manifest.json").exists()
    assert (run.directory / "step_17" / "shard_0.json").stat().st_size > 0
    assert os.readlink(run.directory / "latest") == "step_10"
    assert run.start("torn@17:1", patience_ms=PATIENT_MS, save_every=17)[0] == 0
    assert run.ledger("start")[1]["first_step"] == 11
    assert (run.directory / "step_17" / "manifest.json").exists()


def test_spike_the_loss_jumps_and_recovers(run: Run) -> None:
    assert run.start("spike@40", patience_ms=PATIENT_MS, iterations=60)[0] == 0
    losses = run.losses()
    before = max(losses[step] for step in range(30, 40))
    assert all(losses[step] > 5 * before for step in range(40, 44))
    assert max(losses[step] for step in range(45, 61)) < 2 * before


def test_eval_is_a_long_pause_that_ends_well(run: Run) -> None:
    assert run.start("eval@14", patience_ms=PATIENT_MS, eval_ms=400)[0] == 0
    assert f"Evaluating on {RANKS * 16} samples" in run.log(0)
    assert re.search(
        r"^ validation loss at iteration 13 \| lm loss value: [\d.E+]+ \|", run.log(RANKS - 1), re.M
    )
    assert list(run.losses()) == list(range(1, 25))


def test_a_fault_without_attempt_strikes_again(run: Run) -> None:
    assert [run.start("exception@12")[0] for _ in range(2)] == [1, 1]
    assert [(f["kind"], f["step"]) for f in run.ledger("fault")] == [("exception", 12)] * 2


def start_hung(run: Run, *extra: str) -> subprocess.Popen[bytes]:
    flags = [
        f"--ranks={RANKS}",
        "--fault=hang@12",
        "--iteration-ms=1",
        "--collective-timeout-ms=1000",
        *extra,
    ]
    argv = run.argv(f"--ranks={RANKS}", *flags)
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: run.ledger("fault"), "the hang")
    return process


def alive(run: Run) -> int:
    """How many processes work on this run's directory."""
    mark = os.fsencode(run.directory)
    return sum(mark in command_line(pid) for pid in os.listdir("/proc") if pid.isdigit())


def command_line(pid: str) -> bytes:
    """Empty for a process that has gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def test_hang_all_live_and_nobody_prints_until_ended(run: Run) -> None:
    process = start_hung(run)
    try:
        wait_for(lambda: 11 in run.losses(), "the last line")
        sizes = [len(run.log(rank)) for rank in range(RANKS)]
        with pytest.raises(subprocess.TimeoutExpired):  # longer than the collectives' patience
            process.wait(timeout=2.5)
        assert [len(run.log(rank)) for rank in range(RANKS)] == sizes
        assert alive(run) == RANKS + 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 143
        assert run.ledger("term")[0]["step"] == 11
        assert alive(run) == 0
    finally:
        process.kill()
        process.wait()


def test_a_killed_launcher_leaves_no_rank_behind(run: Run) -> None:
    process = start_hung(run)
    process.kill()
    process.wait()
    wait_for(lambda: alive(run) == 0, "the ranks' end")


def test_sigterm_may_save_and_end_well(run: Run) -> None:
    flags = [
        f"--ranks={RANKS}",
        "--save-on-term",
        "--iterations=100000",
        "--iteration-ms=5",
        "--save-every=50000",
    ]
    process = subprocess.Popen(run.argv(f"--ranks={RANKS}", *flags))
    wait_for(
        lambda: (run.directory / "logs" / f"rank_{RANKS - 1}.log").exists() and run.losses(),
        "a first iteration",
    )
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 0
    step = run.ledger("save")[-1]["step"]
    assert os.readlink(run.directory / "latest") == f"step_{step}"
    assert "exiting program after receiving SIGTERM." in run.log(0)


def test_a_second_writer_is_found_out(run: Run) -> None:
    process = start_hung(run)
    try:
        assert run.start(patience_ms=PATIENT_MS)[0] == 0
        assert len(run.ledger("overlap")) == 1
        assert len(run.ledger("start")) == 2
    finally:
        process.kill()
        process.wait()


def test_it_runs_as_a_module_and_refuses_an_unknown_fault(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "midwatch.agents.drill.trainer", "--checkpoint-dir", str(tmp_path)]
    done = subprocess.run([*argv, "--fault", "gremlin"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'gremlin' is none of nccl, oom" in done.stderr
