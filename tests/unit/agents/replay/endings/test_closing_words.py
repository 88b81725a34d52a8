"""Words of a failure that no rule knows. At the end of a saved log they are its end, else anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.replay.endings.closing_words import kind_of, last_words
from midwatch.agents.replay.job_replay import replay
from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.replayed import Replayed
from midwatch.agents.replay.scheduler_record import from_exit_code
from midwatch.agents.rulesets.bundles import watched_rules
from midwatch.rules.detectors.limits import WatchLimits
from unit.agents.conftest import Watch

STEPS = "".join(f"step {n} loss {3 - n / 50:.3f}\n" for n in range(1, 31))
ON = STEPS.replace("step ", "step 1")
DONE = "`Trainer.fit` stopped: `max_steps=5000` reached.\n"
WHY = "the last lines tell of a failure in words that no rule knows"

TAKEN = "toyd: job 7 was evicted"
TOLD = [
    ("'Toybox' object has no attribute 'lid'", "exception"),
    ("2026-03-02 11:52:40,118 - INFO - 'Toybox' object is not iterable", "exception"),
    (
        "2026-03-02 11:52:40,118 - INFO - paint() missing 1 required positional argument: 'colour'",
        "exception",
    ),
    ("Toys: list index out of range", "exception"),
    ("Unknown argument: --wheels", "config"),
    ("Toys: [Errno 2] No such file or directory: 'wheels.csv'", "config"),
    ("Boyama hatas\u0131: [WinError 2] The system cannot find the file specified", "config"),
    ("toy: caught signal 11 in stage 3", "native_crash"),
    ("toyd: memory limit exceeded", "host_oom"),
    ("ERROR:toyd: this job has exceeded its memory quota", "host_oom"),
    ("toy returns TOY_OUT_OF_RESOURCES", "oom"),
    ("toy: could not allocate a buffer on card 3", "oom"),
    ("toy: the file system is read-only", "storage"),
    ("got SIGTERM, leaving", "cancelled"),
    ("exit=143 for toy-7 at 2026-03-02T11:52:40", "cancelled"),
    ("exit=77 for toy-7 at 2026-03-02T11:52:40", "exception"),
    (TAKEN, "preemption"),
    ("srun: error: Unable to allocate toys: the toy is unknown", "slurm_failure"),
    ("slurmstepd: error: the toys are gone", "slurm_failure"),
    ("toyd: the time limit of this toy is exceeded", "slurm_failure"),
    ("toy check: rank 3 timed out", "distributed_timeout"),
    ("toys: HTTPSConnectionPool(host='toys.example.org', port=443): Read timed out.", "communication"),
    ("toy timeout check failed: rank = 6, thread = 0", "distributed_timeout"),
    ("n4:77:78 [3] toy.cc:8 TCCL WARN the toy never came, time-out", "distributed_timeout"),
    ("toy5: got completion with error:", "communication"),
    ("lost worker 7", "communication"),
    ("11:52:40 toys CRITICAL - The shelf stops: ToyCommunicationError, gone", "communication"),
    ("11:52:40 toys CRITICAL - An exception was raised by painting. This will stop it.", "exception"),
    (": Unable to connect to the toy's endpoint", "communication"),
    ("toy: no progress for 1800 seconds", "hang"),
    ("The toy's training failed (2 errors):", "exception"),
    ("the model has diverged at step 70", "numerical_instability"),
    ("ERROR: the toy policy collapsed. Halting.", "numerical_instability"),
    ("ERROR: the toys lie about. Halting.", "exception"),
    ("toy: accelerator 3 is in error state", "hardware"),
    ("toy: failed to bind to [::]:4188", "port_in_use"),
    ("toy: no licenses available", "config"),
    ("AzureToyCompute job failed.", "exception"),
    ("Toy pipeline failed: no such stage", "exception"),
    ("[Toy] [Fatal] the list of machines lacks this one", "exception"),
    ("Exiting due to a previous error", "exception"),
    ("toy: child returned non-zero", "exception"),
    ("Finished: 3 toys painted, 77 failed", "exception"),
    ("[FAIL] exit 7  (neither the large toys nor the small ones)", "exception"),
    ("[FAIL] The list of toys is not found: /toy/list.csv", "exception"),
]


@pytest.mark.parametrize(("line", "error_type"), TOLD)
def test_words_of_a_failure_at_the_end_of_a_log_are_its_end(watch: Watch, line: str, error_type: str) -> None:
    done = watch(f"{STEPS}{line}\n")
    assert (done.verdict.state, done.verdict.error_type, done.decision.action) == (
        "failed",
        error_type,
        "restart" if line == TAKEN else "hold",
    )
    assert done.verdict.root_line == line


@pytest.mark.parametrize(
    "line", ["toyd: job 7 was evicted, it used up the disk", "toyd: pod toy-7 was evicted (memory pressure)"]
)
def test_a_job_that_was_put_out_for_what_it_used_needs_a_person(watch: Watch, line: str) -> None:
    assert watch(f"{STEPS}{line}\n").decision.action == "hold"


@pytest.mark.parametrize("line", [line for line, _ in TOLD])
def test_the_same_words_in_front_of_steps_or_a_bar_ended_nothing(watch: Watch, line: str) -> None:
    assert watch(f"{STEPS}{line}\n{ON}").verdict.state == "healthy"
    assert (
        watch(f"{STEPS}{line}\nsaved  40%|####      | 4/10 [00:01<00:02, 3.1it/s]\n").verdict.state
        == "healthy"
    )


@pytest.mark.parametrize(
    "line",
    [
        "toy: rank 3 timed out, trying again",
        "the toy holds the best state found before the timeout",
        "Toys are as they were before timeout",
        "toy: the connection may be lost if the node is down",
        "WARNING toy: could not allocate a buffer, a smaller one is taken",
        "INFO toy: the pipeline failed on 3 samples",
        "3 toys, 0 failed",
        "number of failed toys: 3",
        "COMPLETE: 4,180 toys painted, 77 failed",
        "Finished 118 of 120 toys done, and 2 failed",
        "without errors",
        "toy: stage 4 recovered after a lost connection",
        "    raise ToyError('rank 3 timed out')",
        "self.fail_with('the job failed')",
        "Shared connection to 10.0.0.7 closed.",
        "Connection to toy7.example.org closed.",
        "fatal: destination path 'toys' already exists and is not an empty directory.",
        "'The read operation timed out' thrown while requesting GET https://toys.example.org/wheel.bin",
        "Where both executions of a toy failed (7 toys):",
        "[out of memory]           7",
        "failure rate: 0.03",
        "early stopping: the loss has diverged from its best",
        "aborted 0 requests",
        "[FAIL] toy 7: painted blue, expected red",
        "Exiting the toy shop: Errors = 0; Warnings = 7; Notes = 3.",
        "==== Giving up...",
    ],
)
def test_words_that_doubt_take_back_or_measure_end_nothing(watch: Watch, line: str) -> None:
    assert watch(f"{STEPS}{line}\n").verdict.state == "healthy"


def test_behind_the_job_s_own_success_the_words_are_of_something_else(watch: Watch) -> None:
    assert watch(f"{STEPS}{DONE}toyd: job 7 was evicted\n").verdict.state == "healthy"
    assert watch(f"{STEPS}Training completed.\ntoyd: job 7 was evicted\n").verdict.state == "healthy"


def test_a_record_of_measures_below_the_words_is_work_that_went_on(watch: Watch) -> None:
    record = 'TOYS_DONE {"toys": 30, "toy_acc": 0.41, "kept": 3}\n'
    assert watch(f"{STEPS}toy check: timeout during toys\n{record}").verdict.state == "healthy"
    bare = 'TOYS {"toys": 30, "hands": 2, "kept": 3}\n'
    assert watch(f"{STEPS}toy check: timeout during toys\n{bare}").verdict.state == "failed"


def test_stacks_and_rules_below_the_words_do_not_hide_them(watch: Watch) -> None:
    below = "-----\n" + "".join(f"  #{n} 0x7f{n:02x} toy_run\n" for n in range(12)) + "\n"
    done = watch(f"{STEPS}toy check: rank 3 timed out\n{below}")
    assert done.verdict.root_line == "toy check: rank 3 timed out"


def test_a_bare_giving_up_is_of_a_training_s_patience_or_of_what_failed_above_it(watch: Watch) -> None:
    assert watch(f"{STEPS}not kept, for 0.61 > 0.58\nGiving up.\n").verdict.state == "healthy"
    assert watch(f"{STEPS}toy: the link to n4 is down\nGiving up.\n").verdict.error_type == "communication"


def test_more_than_a_few_lines_below_the_words_speak_against_an_end(watch: Watch) -> None:
    rest = "".join(f"toy {'abcdefgh'[n]} is put away\n" for n in range(8))
    assert watch(f"{STEPS}toy check: rank 3 timed out\n{rest}").verdict.state == "healthy"


def test_of_several_lines_the_first_that_names_a_kind_counts(watch: Watch) -> None:
    done = watch(f"{STEPS}toy: job failed\ntoy: the link to n4 is down\ntoy: aborting\n")
    assert done.verdict.root_line == "toy: the link to n4 is down"


def test_an_error_as_the_last_line_is_typed_by_its_words(watch: Watch) -> None:
    assert watch(f"{STEPS}ERROR: toy check: rank 3 timed out\n").verdict.error_type == "distributed_timeout"


def ended(log: str, exit_code: int | None, policy_name: str = "verdict") -> Replayed:
    policy = load_policy(policy_name)
    book = Rulebook({policy.name: policy}, sign=lambda command: command, default_policy=policy.name)
    files = [LogFile("log", log.encode(), 0.0)]
    watched = watched_rules(("default",), scan=False)
    end = None if exit_code is None else from_exit_code(exit_code)
    return replay("replay:file/log", files, watched, book, WatchLimits(), end=end)


def test_a_taken_machine_is_no_restart_against_a_person_or_another_policy() -> None:
    log = f"{STEPS}{TAKEN}\n"
    assert ended(log, 1).decision.action == "restart"
    assert ended(log, 130).decision.action == "hold"
    assert ended(log, None, "megatron_conservative").decision.action == "hold"


def test_where_only_the_exit_code_tells_of_a_failure_the_last_words_say_which() -> None:
    done = ended(f"{STEPS}toy: the link to n4 is down\n", 1)
    assert (done.verdict.error_type, done.verdict.root_line_number) == ("communication", 31)
    assert (done.decision.action, done.decision.reason) == ("hold", WHY)
    assert ended(STEPS, 1).verdict.error_type == "unknown"
    assert ended(f"{STEPS}toy: the link to n4 is down\n", 0).verdict.state == "healthy"
    finished = ended(f"{STEPS}{DONE}toy: the link to n4 is down\n", 1)
    assert finished.verdict.error_type == "unknown"


def test_the_last_words_say_more_of_a_failure_than_a_loss_that_had_jumped() -> None:
    jumped = STEPS + "".join(f"step {n} loss 31.0\n" for n in range(31, 36))
    assert ended(jumped, 1).verdict.error_type == "loss_spike"
    done = ended(f"{jumped}toyd: memory limit exceeded\n", 1)
    assert (done.verdict.error_type, done.verdict.root_line) == ("host_oom", "toyd: memory limit exceeded")


@given(st.binary(max_size=500))
def test_any_line_has_a_kind_or_none(line: bytes) -> None:
    kind_of(line)


@given(st.lists(st.binary(max_size=60), max_size=12), st.integers(0, 12))
def test_the_last_words_are_a_line_behind_the_last_step(lines: list[bytes], stepped: int) -> None:
    numbered = list(enumerate(lines, 1))
    found = last_words(numbered, (), stepped)
    if found is not None:
        assert found[0] > stepped
        assert kind_of(lines[found[0] - 1]) == found[1]


def test_how_long_it_took_is_no_measure_of_work(watch: Watch) -> None:
    line = "'Toybox' object has no attribute 'lid'"
    done = watch(f"{STEPS}{line}\nTotal running time: 77:11\n")
    assert (done.verdict.state, done.verdict.root_line) == ("failed", line)


def test_a_heading_for_each_part_s_end_tells_of_no_failure(watch: Watch) -> None:
    ends = ("***** painting process died *****", "***** sanding process died *****")
    assert watch(f"{STEPS}{ends[0]}\nthe toys are dried\n{ends[1]}\n").verdict.state != "failed"
    for text in (
        f"{ends[1]}\n",
        f"{ends[0]}\n{ends[1]}\n",
        f"{ends[0].strip('* ')}\n\n{ends[1].strip('* ')}\n",
    ):
        assert watch(STEPS + text).verdict.state == "failed"
