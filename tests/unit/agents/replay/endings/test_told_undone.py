"""A saved log whose last lines say that not all of the work was done: the job failed, whatever went on."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.endings.told_undone import UNDONE, told_undone
from midwatch.agents.replay.reading.log_files import LogFile, up_to
from unit.agents.conftest import Watch

STEPS = "".join(f"step {n} loss {3 - n / 50:.3f}\n" for n in range(1, 31))
MORE = STEPS.replace("step ", "step 1")
RAISED = (
    "Traceback (most recent call last):\n"
    '  File "/toys/store.py", line 9, in write\n    box.write(toy)\n'
    "OSError: [Errno 28] No space left on device\n"
)


def told(text: str) -> int:
    return told_undone(LogFile("log", text.encode(), 0.0))


@pytest.mark.parametrize(
    "line",
    [
        "toy files: 2/4",
        "merge: 3 of 4 shards",
        "attic: 48 of 64 vectors, dim 7",
        "snapshots: submitted=6 written=0",
        "[toys] artefacts written 0",
        "nothing was saved",
        "incomplete run: 7 of 70 toys",
        "workers with non-zero exit: 1",
        "toyd: 1 of 3 stages failed",
        "paint: FAILED",
        "toyd: the box is gone, exit 124",
        "job ended, code 75",
        "rc=1",
        "[toyd.sh] paint.py => 1",
        "sweep: trial a status 0, trial b status 1",
        "Toys trained: 1 of 4",
        "[INFO] done: 77 toys, last checkpoint: None",
        "toyd WARNING: Final checkpoint save failed: [Errno 28] No space left on device: 'toys.json'",
        "could not write the best model",
        "ERROR: the toys fell over. Halting.",
        "export: out/toys.csv 0 lines for Monday",
    ],
)
def test_words_of_what_was_left_undone(line: str) -> None:
    assert told(STEPS + line + "\n") == 31
    assert told(f"{STEPS}{line}\n\nreal\t0m7.000s\nuser\t0m5.899s\n") == 31
    assert told(f"{STEPS}{line}\n\n\n\nthe toys are put away\n") == 31


@pytest.mark.parametrize(
    "line",
    [
        "the toys have status 7",
        "Toys trained: 4 of 4",
        "toy files: 4/4",
        "kept 342 of 360 records",
        "checkpoint 7 save failed, trying again",
        "halting the toys was fine",
        "ERROR: the toys' album did not answer, giving up",
        "7781.batch        batch            toys         16  COMPLETED      0:0 ",
        "toys: 1/4 formats, all required ones are there",
        "aggregated 3/6 clients, the quorum is reached",
        "wandb: 7 of 9 files uploaded",
        "errors written: 0.5",
        "  adding: toys/ (stored 0%)",
        "stored in toys/rank10/2026-03-02/shards/7",
        "rc=0",
        "STAGE 0 COMPLETED SUCCESSFULLY!",
        "Stage 0 metadata saved to toys.pkl",
        "GET /toys finished with status 200",
        "fold 2/5 of the toys",
        "toys => 91",
        "the query returned 12",
        "card 3: status 1",
        "shard 3/8: 7 toys",
        "Loading checkpoint shards: 1/7",
        "job ended, code 0",
        "last checkpoint: none of the toys is newer",
        "[INFO] latest checkpoint: None",
        "best checkpoint: toys/7.pt",
        "export: out/toys.csv 70 lines, 0 lines left out",
        "[toyd.sh] paint.py => 0",
        "round 7/70\nround 8/70\nround 9/70",
    ],
)
def test_words_of_what_was_done_or_not_needed(line: str) -> None:
    assert told(STEPS + line + "\n") == 0


def test_a_code_in_front_of_the_last_lines_is_of_something_else() -> None:
    assert told("toy 7: rc=1\n" + STEPS) == 0
    assert told("toy 7: rc=1\ntoy 8\ntoy 9\n") == 0


def test_behind_the_job_s_word_of_its_success_a_code_may_be_its_closing_s() -> None:
    file = LogFile("log", b"all toys done\ntoyd: exit 143\n", 0.0)
    assert told_undone(file) == 2
    assert told_undone(file, succeeded=True) == 0


def test_the_failure_that_steps_had_undone_is_the_root(watch: Watch) -> None:
    done = watch(f"{STEPS}{RAISED}{MORE}snapshots: submitted=6 written=0\n")
    assert (done.verdict.state, done.verdict.error_type) == ("failed", "storage")
    assert done.verdict.root_line == "OSError: [Errno 28] No space left on device"
    assert UNDONE in done.assumed
    assert watch(f"{STEPS}{RAISED}{MORE}snapshots: submitted=6 written=6\n").verdict.state == "healthy"


def test_a_reclaimed_machine_is_worth_a_restart_though_steps_followed_its_notice(watch: Watch) -> None:
    notice = 'toyd: instance-action = {"action": "terminate", "time": "2026-03-02T11:52:40Z"}\n'
    done = watch(f"{STEPS}{notice}step 31 loss 2.1\nincomplete run: 31 of 70 steps\n")
    assert (done.verdict.error_type, done.decision.action) == ("preemption", "restart")


def test_what_a_cut_file_ends_with_are_no_last_words_of_the_job(watch: Watch) -> None:
    boxes = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
    done = "`Trainer.fit` stopped: `max_steps=30` reached.\n"
    end = "srun: error: {box}: task 0: Exited with exit code 143\nnothing was saved of {box}\n"
    left = "".join(end.format(box=box) for box in boxes)
    assert watch(STEPS + done + left).verdict.root_line == "nothing was saved of eta"


def test_without_a_failure_a_person_decides_on_the_words(watch: Watch) -> None:
    done = watch(f"{STEPS}toy files: 2/4\n")
    assert (done.verdict.state, done.decision.action) == ("failed", "hold")
    assert (done.verdict.root_line, done.decision.reason) == ("toy files: 2/4", UNDONE)


@pytest.mark.parametrize(
    ("number", "kept"), [(1, b"a\n"), (2, b"a\nbb\n"), (3, b"a\nbb\nccc"), (9, b"a\nbb\nccc")]
)
def test_a_file_as_if_it_ended_behind_a_line(number: int, kept: bytes) -> None:
    assert up_to(LogFile("log", b"a\nbb\nccc", 0.0), number).tail() == kept
