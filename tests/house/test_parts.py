"""A part that a test needs and the machine lacks: a visible skip for a person, a failure in CI."""

from __future__ import annotations

import pytest

from house import parts


@pytest.mark.parametrize("ci", ["", "true"])
def test_a_part_that_is_there_is_no_matter(ci: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", ci)
    try:
        parts.require("a SLURM", True, "apt-get install slurm-wlm munge")
        ended = "went on"
    except (pytest.skip.Exception, pytest.fail.Exception) as error:  # a skip here would pass for green
        ended = repr(error)
    assert ended == "went on"


@pytest.mark.parametrize("ci", ["", "0", "false"])
def test_a_missing_part_is_a_skip_that_says_how_to_get_it(ci: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.skip.Exception, match="needs a SLURM: apt-get install slurm-wlm munge"):
        parts.require("a SLURM", False, "apt-get install slurm-wlm munge")


@pytest.mark.parametrize("ci", ["1", "true", "gate"])
def test_in_ci_a_missing_part_is_a_failure(ci: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.fail.Exception, match="needs a SLURM"):
        parts.require("a SLURM", False, "apt-get install slurm-wlm munge")
