"""What a person sees of the start: the answer of sbatch."""

from __future__ import annotations

import pytest

from midwatch.agents.launch.job_spec import Started
from midwatch.agents.launch.start import sbatch_answer
from midwatch.streams.records import Spec

SPEC = Spec("slurm:ann/44", "slurm", ("sbatch", "t.sh"), "/", {}, "ann", (), "", "verdict", armed=False)


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ([], "Submitted batch job 44"),
        (["--parsable"], "44;lab"),
        (["-Q"], ""),
        (["--quiet", "--parsable"], ""),
        (["-J", "--parsable"], "Submitted batch job 44"),
    ],
)
def test_the_answer_is_the_line_that_sbatch_prints(options: list[str], answer: str) -> None:
    started = Started(SPEC, "slurm:44:0", answer="44;lab")
    assert sbatch_answer(("sbatch", *options, "t.sh", "--parsable"), started) == answer
