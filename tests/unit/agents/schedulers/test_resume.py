"""What a new start is told of its checkpoint: a placeholder fills one word, and a path stays below."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from checkpoint_shapes import cut, lightning_file, torchtune_folder
from midwatch.agents.schedulers.checkpoint_store import is_below
from midwatch.agents.schedulers.resume import (
    ADDED,
    ResumePoint,
    begin,
    filled,
    template,
    variables,
    variables_to_choose,
)
from midwatch.agents.schedulers.wrapping import start_spec
from midwatch.agents.signing import new_signer, spec_hash
from midwatch.shippers.identity import checkpoint_choice
from midwatch.streams.errors import UsageError
from midwatch.streams.records import CheckpointChoice
from midwatch.streams.records.codec import canonical
from unit.agents.schedulers.test_wrapping import spec

POINT = ResumePoint(40, "/my ckpt/step_40; rm -rf $HOME", "/my ckpt", 0)


def test_a_placeholder_fills_one_word_whatever_the_path_holds() -> None:
    words = template(["--load {checkpoint} --at={step}", "'--in {directory}'"])
    assert words == ("--load", "{checkpoint}", "--at={step}", "--in {directory}")
    assert filled(words, POINT) == ("--load", POINT.path, "--at=40", "--in /my ckpt")


def test_what_a_path_holds_is_not_filled_again() -> None:
    odd = replace(POINT, path="/ckpt/{step}")
    assert filled(("{checkpoint}",), odd) == ("/ckpt/{step}",)


@pytest.mark.parametrize("text", ["--load {model}", "{}", "--load '{checkpoint}"])
def test_a_template_that_cannot_be_filled_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        template([text])


def test_without_a_checkpoint_the_command_line_stays_as_it_was() -> None:
    made = start_spec(spec(resume_arguments=("--load", "{checkpoint}")), attempt=3)
    assert made.argv[-1] == "1e-4"
    assert made.environment["MIDWATCH_ATTEMPT"] == "3"
    assert "MIDWATCH_RESUME_FROM" not in made.environment


def test_a_path_outside_the_checkpoint_directory_is_not_below_it(tmp_path: Path) -> None:
    inside, outside = tmp_path / "ckpt" / "step_1", tmp_path / "other"
    inside.mkdir(parents=True)
    outside.mkdir()
    (tmp_path / "ckpt" / "step_2").symlink_to(outside)
    (tmp_path / "alias").symlink_to(tmp_path / "ckpt")
    assert is_below(inside, tmp_path / "ckpt")
    assert is_below(tmp_path / "alias" / "step_1", tmp_path / "alias")
    assert not is_below(tmp_path / "ckpt" / "step_2", tmp_path / "ckpt")
    assert not is_below(tmp_path / "ckpt", tmp_path / "ckpt")
    assert not is_below(tmp_path / "ckpt" / ".." / "other", tmp_path / "ckpt")


def test_a_start_that_an_earlier_executor_told_loses_that_when_slurm_starts_it_again() -> None:
    given = {"A": "b", **variables(2, POINT, ("--load", "x")), "TRACEPARENT": "00-a-b-01"}
    argv = ("train.sh", "--lr", "--load", "x")
    ours = begin(argv, given, restarts=0)
    assert ours.environment["TRACEPARENT"] == "00-a-b-01"
    assert ours.argv == argv
    assert ours.environment["MIDWATCH_RESUME_STEP"] == "40"
    assert ADDED not in ours.environment
    again = begin(argv, given, restarts=1)
    assert (again.argv, again.environment) == (("train.sh", "--lr"), {"A": "b"})
    plain = begin(argv, {"A": "b"}, restarts=1)
    assert (plain.argv, plain.environment, plain.for_shipper) == (argv, {"A": "b"}, {})


def test_a_start_that_chooses_takes_the_newest_complete_checkpoint_at_its_own_beginning(
    tmp_path: Path,
) -> None:
    given = {"A": "b", **variables_to_choose(2, str(tmp_path), ("--load", "{checkpoint}", "--at={step}"))}
    old = lightning_file(tmp_path / "step=40.ckpt", 40)
    torn = cut(lightning_file(tmp_path / "step=90.ckpt", 90))
    first = begin(("train.sh", "--lr"), given, restarts=0)
    assert first.argv == ("train.sh", "--lr", "--load", str(old), "--at=40")
    told = {"MIDWATCH_RESUME_FROM": str(old), "MIDWATCH_RESUME_STEP": "40", "MIDWATCH_ATTEMPT": "2"}
    assert first.environment == {"A": "b", **told}
    assert first.notes == (f"skips the checkpoint {torn}: it was cut short",)

    newer = lightning_file(tmp_path / "step=60.ckpt", 60)
    again = begin(("train.sh", "--lr"), given, restarts=1)
    assert again.argv[-2:] == (str(newer), "--at=60")
    assert again.environment["MIDWATCH_ATTEMPT"] == "3"


def test_a_start_that_chooses_without_a_complete_checkpoint_gets_its_attempt_only(tmp_path: Path) -> None:
    given = variables_to_choose(2, str(tmp_path / "none yet"), ("--load", "{checkpoint}"))
    made = begin(("train.sh",), given, restarts=0)
    assert (made.argv, made.environment, made.for_shipper) == (("train.sh",), {"MIDWATCH_ATTEMPT": "2"}, {})
    (tmp_path / "a file").write_text("")
    unreadable = begin(("train.sh",), variables_to_choose(2, str(tmp_path / "a file"), ()), restarts=0)
    assert unreadable.environment == {"MIDWATCH_ATTEMPT": "2"}
    assert "cannot read the checkpoints" in unreadable.notes[0]


def test_the_shipper_of_a_start_that_chose_sends_the_choice_and_no_other(tmp_path: Path) -> None:
    folder = torchtune_folder(tmp_path / "epoch_3")
    made = begin(("train.sh",), variables_to_choose(2, str(tmp_path), ()), restarts=0)
    sent = checkpoint_choice({**made.environment, **made.for_shipper})
    assert sent == CheckpointChoice(3, str(folder), "epoch", int(folder.stat().st_mtime * 1000))
    assert checkpoint_choice(variables(2, POINT, ())) is None, "the executor's outcome names that one"
    assert checkpoint_choice({}) is None


def test_the_template_is_signed_and_a_spec_without_one_keeps_its_bytes() -> None:
    signer = new_signer()
    plain, made = signer.sign(spec()), signer.sign(spec(resume_arguments=("--load", "{checkpoint}")))
    assert b"resume_arguments" not in canonical(plain)
    assert spec_hash(plain) != spec_hash(made)
    assert signer.verifier().accepts(made)
    assert not signer.verifier().accepts(replace(made, resume_arguments=("--load", "/elsewhere")))
    assert not signer.verifier().accepts(replace(made, resume_arguments=()))
