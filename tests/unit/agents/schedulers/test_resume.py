"""What a new start is told of its checkpoint: a placeholder fills one word, and a path stays below."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from midwatch.agents.launch.shim import told
from midwatch.agents.schedulers.resume import ResumePoint, filled, is_below, template, variables
from midwatch.agents.schedulers.wrapping import start_spec
from midwatch.agents.signing import new_signer, spec_hash
from midwatch.streams.errors import UsageError
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


def test_a_start_by_slurm_itself_loses_what_ours_was_told() -> None:
    given = {"A": "b", **variables(2, POINT, ("--load", "x"), "00-a-b-01")}
    argv = ["train.sh", "--lr", "--load", "x"]
    ours, mine = told(argv, given, requeued=False)
    assert ours == argv
    assert (mine["MIDWATCH_RESUME_STEP"], mine["TRACEPARENT"]) == ("40", "00-a-b-01")
    assert told(argv, given, requeued=True) == (["train.sh", "--lr"], {"A": "b"})
    assert told(argv, {"A": "b"}, requeued=True) == (argv, {"A": "b"})


def test_the_template_is_signed_and_a_spec_without_one_keeps_its_bytes() -> None:
    signer = new_signer()
    plain, made = signer.sign(spec()), signer.sign(spec(resume_arguments=("--load", "{checkpoint}")))
    assert b"resume_arguments" not in canonical(plain)
    assert spec_hash(plain) != spec_hash(made)
    assert signer.verifier().accepts(made)
    assert not signer.verifier().accepts(replace(made, resume_arguments=("--load", "/elsewhere")))
    assert not signer.verifier().accepts(replace(made, resume_arguments=()))
