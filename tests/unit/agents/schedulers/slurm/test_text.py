"""What SLURM prints, whatever people put into names and comments, is read as it was meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.schedulers.slurm.text import (
    accounts,
    effect_key_in,
    epoch,
    from_sacct,
    is_final,
    job_state,
    queue,
)

KEY = "0123456789abcdef0123456789abcdef"


def row(native: str = "7", word: str = "RUNNING", **fields: str) -> str:
    texts = {"restarts": "0", "status": "0", "started": "2026-01-05T10:00:00", "reason": "None"} | fields
    texts = {"user": "anna", "comment": f"mw:{KEY}"} | texts
    names = ("restarts", "status", "started", "reason", "user", "comment")
    return "|".join([f"{native:<40}", f"{word:<24}", *(f"{texts[name]:<16}" for name in names)])


def test_a_row_becomes_a_job() -> None:
    (job,) = queue(row(restarts="2") + "\n")
    assert (job.native_id, job.incarnation, job.effect_key, job.user) == ("7", "slurm:7:2", KEY, "anna")
    assert (job.state.kind, job.state.word, job.started) == ("running", "RUNNING", "2026-01-05T10:00:00")


@pytest.mark.parametrize(
    ("native", "seen"),
    [("44_3", ["44_3"]), ("44_[5-9]", []), ("49+0", ["49"]), ("49+1", []), ("7; rm -rf /", []), ("-1", [])],
)
def test_only_ids_of_one_start_are_jobs(native: str, seen: list[str]) -> None:
    assert [job.native_id for job in queue(row(native))] == seen


def test_a_task_that_was_cancelled_before_it_ran_keeps_its_index_by_the_comment() -> None:
    cancelled = row("51", "CANCELLED", comment=f"mw:{KEY} task:3 project blue")
    assert [job.native_id for job in queue(cancelled)] == ["51_3"]
    assert [job.native_id for job in queue(row("51", comment="mine task:3"))] == ["51"]
    assert [job.native_id for job in queue(row("51_3", comment=f"mw:{KEY} task:3"))] == ["51_3"]


@pytest.mark.parametrize(
    ("word", "reason", "kind"),
    [
        ("PENDING", "Priority", "queued"),
        ("PENDING", "JobHeldUser", "held"),
        ("PENDING", "JobHeldAdmin", "held"),
        ("PENDING", "BeginTime", "queued"),
        ("REQUEUE_HOLD", "None", "held"),
        ("CONFIGURING", "None", "running"),
        ("SUSPENDED", "None", "running"),
        ("COMPLETING", "None", "ending"),
        ("COMPLETED", "None", "ended"),
        ("NODE_FAIL", "None", "ended"),
        ("OUT_OF_ME+", "OutOfMemory", "unknown"),
        ("A_STATE_OF_2031", "None", "unknown"),
    ],
)
def test_every_state_has_its_kind(word: str, reason: str, kind: str) -> None:
    assert job_state(word, reason, 0, None).kind == kind


@pytest.mark.parametrize(
    ("word", "mode", "error_type"),
    [
        pytest.param("COMPLETED", "success", "", marks=pytest.mark.capability("S001-37")),
        pytest.param("FAILED", "crash", "slurm_failure", marks=pytest.mark.capability("S001-36", "S001-65")),
        ("TIMEOUT", "timeout", "slurm_failure"),
        ("DEADLINE", "timeout", "slurm_failure"),
        ("OUT_OF_MEMORY", "crash", "host_oom"),
        ("NODE_FAIL", "crash", "slurm_failure"),
        ("PREEMPTED", "ended", "preemption"),
        ("CANCELLED", "ended", "cancelled"),
    ],
)
def test_every_end_has_its_mode_and_type(word: str, mode: str, error_type: str) -> None:
    state = job_state(word, "", 0, None)
    assert (state.mode, state.error_type) == (mode, error_type)
    assert state.over


@pytest.mark.parametrize(
    ("status", "code", "number"),
    [
        ("768", 3, None),
        ("9", 0, 9),
        ("35072", 137, None),
        ("3:0", 3, None),
        ("0:15", 0, 15),
        ("0:125", 0, 125),
    ],
)
def test_exit_codes_in_both_forms(status: str, code: int, number: int | None) -> None:
    (job,) = queue(row(word="FAILED", status=status))
    assert (job.state.exit_code, job.state.signal) == (code, number)


def test_who_cancelled_if_the_text_says_so() -> None:
    assert job_state("CANCELLED by 1000", "", 0, 15).by_person == "uid 1000"
    assert job_state("CANCELLED", "", 0, 15).by_person == "somebody"
    assert job_state("FAILED", "", 1, None).by_person == ""


@pytest.mark.parametrize(
    ("comment", "key"),
    [
        (f"mw:{KEY}", KEY),
        (f"mw:{KEY} their own | comment", KEY),
        (f"their own mw:{KEY}", ""),
        (f"mw:{KEY},more", ""),
        ("(null)", ""),
        ("", ""),
    ],
)
def test_the_key_stands_first_or_is_none(comment: str, key: str) -> None:
    (job,) = queue(row(comment=comment))
    assert job.effect_key == effect_key_in(comment) == key


@given(st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp"), blacklist_characters="\x85")))
def test_no_comment_changes_another_field(comment: str) -> None:
    (job,) = queue(row(comment=comment))
    assert (job.native_id, job.state.word, job.user) == ("7", "RUNNING", "anna")


def test_a_row_of_another_shape_is_an_error_and_no_empty_queue() -> None:
    with pytest.raises(ValueError, match="not a row of squeue"):
        queue("slurm_load_jobs error: something went wrong")
    assert queue("\n") == ()


def test_sacct_has_one_row_a_start() -> None:
    text = "NODE_FAIL|0:0\nCANCELLED by 1000|0:15\n"
    first, second = from_sacct(text, 0), from_sacct(text, 1)
    assert first is not None
    assert second is not None
    assert (first.word, second.word, second.by_person) == ("NODE_FAIL", "CANCELLED", "uid 1000")
    assert from_sacct(text, 2) is None
    assert from_sacct("", 0) is None


CONFIG = """Configuration data as of 2026-01-05T10:00:30
AccountingStorageType   = accounting_storage/none
BOOT_TIME               = 2026-01-05T09:59:30
"""


def test_the_epoch_is_reckoned_by_the_schedulers_own_clock() -> None:
    assert (epoch(CONFIG).name, epoch(CONFIG).age_s) == ("2026-01-05T09:59:30", 60.0)
    with pytest.raises(ValueError, match="BOOT_TIME"):
        epoch("Configuration data as of 2026-01-05T10:00:30")


def test_whether_there_is_accounting() -> None:
    assert not accounts(CONFIG)
    assert not accounts(CONFIG.replace("accounting_storage/none", "(null)"))
    assert accounts(CONFIG.replace("/none", "/slurmdbd"))


@pytest.mark.parametrize(
    ("error", "final"),
    [
        ("sbatch: error: Batch job submission failed: Invalid partition name specified", True),
        ("sbatch: error: Batch job submission failed: Invalid account or account/partition", True),
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", False),
        (
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller",
            False,
        ),
        ("sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received", False),
        ("sbatch: error: Unable to open file train.sh", True),
        ("no answer within 30 s", False),
    ],
)
def test_a_refusal_is_final_only_if_the_scheduler_itself_refused(error: str, final: bool) -> None:
    assert is_final(error) == final
