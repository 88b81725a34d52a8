"""What a program logged of a failure ended nothing if the same logger tells of its success behind it."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

RAISED = (
    'Traceback (most recent call last):\n  File "/toys/train.py", line 9, in <module>\n    fit(7)\n'
    '  File "/toys/train.py", line 3, in fit\n    x = net(x)\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)
LOGGED = "2026-03-02 11:52:40,118 ERROR toys: size 64 is too large\n" + RAISED
PUSHED = "2026-03-02 11:52:40,118 ERROR toys: push: ConnectionRefusedError: [Errno 111] Connection refused\n"
DONE = "2026-03-02 11:53:40,118 INFO toys: finished after 77 steps, loss 0.31\n"
LISTED = (
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    "============================================================\ntoys.train FAILED\n"
    "Root Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n"
    "  exitcode  : 1 (pid: 4041)\n  traceback : Traceback (most recent call last):\n"
    '    File "/toys/train.py", line 3, in fit\n      x = net(x)\n'
    "  torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n  \n" + "=" * 60 + "\n"
)
WITHIN = RAISED.replace("<module>", "main")
NO_NUMBER = "2026-03-02 11:52:40,118 WARNING toys: epoch 1/7: loss=nan, time=30.1s\n"
COPIED = "".join(
    f"2026-03-02 11:53:40,118 - INFO - {line}\n" for line in (*RAISED.splitlines(), "Finished at 11:53 UTC")
)


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        pytest.param(PUSHED + DONE, False, id="a logger wrote both"),
        pytest.param(RAISED + DONE, True, id="no logger wrote the failure"),
        pytest.param(LOGGED + DONE, True, id="it logged a traceback and may have raised it again"),
        pytest.param(PUSHED + "Training completed\n", True, id="a script tells of the success"),
        pytest.param(PUSHED + DONE.replace("2026-03-02 ", ""), True, id="another logger"),
        pytest.param(DONE + PUSHED, True, id="the success stands in front"),
        pytest.param(COPIED, True, id="a wrapper copied both"),
        pytest.param("Fatal Python error: Aborted\n" + PUSHED + DONE, True, id="a process crashed above"),
        pytest.param(WITHIN + "All done!\n", False, id="a handler printed it"),
        pytest.param(
            "Error executing job with overrides: ['toys=7']\n" + WITHIN + "All done!\n",
            True,
            id="Hydra shows it",
        ),
        pytest.param(
            "ERROR: Training failed: no memory\n" + WITHIN + "All done!\n", True, id="of the whole run"
        ),
        pytest.param(LISTED + "[11:53] DONE, toys are in /toys/out\n", True, id="torchrun lists a process"),
        pytest.param(NO_NUMBER * 3 + DONE.replace("0.31", "nan"), True, id="a loss that is no number"),
        pytest.param(NO_NUMBER * 3 + PUSHED + DONE.replace("0.31", "nan"), True, id="and another failure"),
    ],
)
def test_a_logger_that_tells_of_the_success_had_caught_the_failure(
    watch: Watch, text: str, failed: bool
) -> None:
    assert (watch(text).verdict.state == "failed") is failed


def test_a_warning_behind_the_failure_is_not_the_last_failure(watch: Watch) -> None:
    handled = RAISED.replace("<module>", "push").replace(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "urllib.error.URLError: <urlopen error [Errno 111] Connection refused>",
    )
    kept = "WARNING:toys.push:kept for later (<urlopen error [Errno 111] Connection refused>)\n"
    lines = (kept + "INFO:toys:epoch 1/7 train_mae=0.4\n") * 3
    done = "INFO:toys:finished: 77 steps, best model in toy.pt\n"
    assert watch(lines + handled + kept + done).verdict.state != "failed"
    assert watch(lines + handled + kept).verdict.state == "failed"


THREAD = (
    "Exception in thread toybeat:\nTraceback (most recent call last):\n"
    '  File "/usr/lib/python3.12/threading.py", line 1073, in _bootstrap_inner\n    self.run()\n'
    '  File "/toys/paint.py", line 38, in toybeat\n    feed.send(7)\n'
    "ConnectionResetError: [Errno 104] Connection reset by peer\n"
)


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        pytest.param("All 7 epochs finished, weights in toy.pt\n" + THREAD, False, id="behind the success"),
        pytest.param(THREAD, True, id="no success"),
        pytest.param(
            "All 7 epochs finished, weights in toy.pt\n" + THREAD + RAISED, True, id="and the program"
        ),
    ],
)
def test_a_thread_that_fails_behind_the_success_ended_nothing(watch: Watch, text: str, failed: bool) -> None:
    steps = "Epoch 1/7 - loss: 0.3\nEpoch 2/7 - loss: 0.2\nEpoch 3/7 - loss: 0.1\n"
    assert (watch(steps + text).verdict.state == "failed") is failed


def test_what_a_thread_could_not_write_to_the_disk_is_missing_whatever_the_job_says(watch: Watch) -> None:
    refused = THREAD.replace("ConnectionResetError: [Errno 104] Connection reset by peer", "OSError: {}")
    done = "All 7 epochs finished, weights in toy.pt\n"
    assert watch(done + refused.format("[Errno 28] No space left on device")).verdict.error_type == "storage"
    assert watch(done + refused.format("the toy is asleep")).verdict.state != "failed"


def test_what_is_saved_again_and_again_above_a_thread_s_failure_is_no_end_of_the_work(watch: Watch) -> None:
    saved = [f"Saved the toys to: toys/step_{number}\n" for number in (700, 1400, 2100)]
    assert watch(saved[-1] + THREAD).verdict.state != "failed"
    assert watch("".join(saved) + THREAD).verdict.state == "failed"


def test_a_file_that_a_loop_could_not_take_ends_nothing_where_the_program_wrote_its_results(
    watch: Watch,
) -> None:
    refused = "".join(
        f"Error processing /toys/{name}.wav: Error opening '/toys/{name}.wav': System error.\n"
        for name in ("boat", "car", "doll")
    )
    assert watch(refused + "Final toys saved to toys.json\n").verdict.state != "failed"
    assert watch(refused).verdict.error_type == "data"
    assert watch(refused + "the toys are put away\n").verdict.error_type == "data"
    raised = refused.replace("Error processing", "toys.ReadError: Error processing")
    assert watch(raised + "Final toys saved to toys.json\n").verdict.error_type == "data"
