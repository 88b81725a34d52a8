"""A person's sbatch line starts the same job again: held, with the key, whatever options it has."""

from __future__ import annotations

import pytest

from midwatch.agents.schedulers.slurm.sbatch_argv import restart_argv, split
from midwatch.streams.errors import ConfigurationError

KEY = "0123456789abcdef0123456789abcdef"
OURS = ["--parsable", "--hold", f"--comment=mw:{KEY}", "--open-mode=append"]


def made(line: str, **more: str) -> list[str]:
    return restart_argv(line.split(), KEY, **more)


@pytest.mark.parametrize(
    ("line", "kept", "rest"),
    [
        ("sbatch train.sh", [], ["train.sh"]),
        (
            "sbatch -N 4 --time 10 train.sh -N 9 --hold",
            ["-N", "4", "--time", "10"],
            ["train.sh", "-N", "9", "--hold"],
        ),
        ("sbatch -N4 --time=10 train.sh", ["-N4", "--time=10"], ["train.sh"]),
        ("sbatch -vN 4 train.sh x", ["-v", "-N", "4"], ["train.sh", "x"]),
        ("sbatch -vN4 train.sh x", ["-v", "-N4"], ["train.sh", "x"]),
        ("sbatch --exclusive --requeue -k train.sh", ["--exclusive", "--requeue", "-k"], ["train.sh"]),
        ("sbatch --nice=5 -- --odd-name.sh", ["--nice=5"], ["--", "--odd-name.sh"]),
        ("sbatch --wrap hostname", ["--wrap", "hostname"], []),
        ("/opt/slurm/bin/sbatch - x", [], ["-", "x"]),
        ("sbatch -HQW --parsable -d afterok:5 train.sh", [], ["train.sh"]),
        ("sbatch --wait --dependency afterok:5 --quiet train.sh", [], ["train.sh"]),
    ],
)
def test_the_persons_options_stay_and_ours_come_last_before_the_script(
    line: str, kept: list[str], rest: list[str]
) -> None:
    argv = made(line, after="12")
    assert argv == [line.split(maxsplit=1)[0], *kept, *OURS, "--dependency=afterany:12", *rest]


def test_their_comment_is_kept_behind_the_key() -> None:
    argv = restart_argv(["sbatch", "--comment", "project blue", "train.sh"], KEY)
    assert argv == ["sbatch", "--parsable", "--hold", f"--comment=mw:{KEY} project blue", OURS[3], "train.sh"]


def test_their_open_mode_is_theirs() -> None:
    assert "--open-mode=append" not in made("sbatch --open-mode=truncate train.sh")


def test_a_first_start_keeps_its_dependency_and_its_array() -> None:
    argv = made("sbatch -d afterok:5 --array=1-9 train.sh")
    assert argv[1:5] == ["-d", "afterok:5", "--array=1-9", "--parsable"]


def test_of_an_array_only_the_task_starts_again() -> None:
    argv = made("sbatch -a 1-9 train.sh", after="44_3")
    marked = [*OURS[:2], f"{OURS[2]} task:3", OURS[3]]
    assert argv == ["sbatch", *marked, "--dependency=afterany:44_3", "--array=3", "train.sh"]


def test_bad_nodes_are_excluded_beside_theirs() -> None:
    assert "--exclude=n1,n7" in made("sbatch -x n1 train.sh", exclude_nodes="n7")
    assert "--exclude=n7" in made("sbatch train.sh", exclude_nodes="n7")


@pytest.mark.parametrize(
    "line", ["srun train.sh", "bash -c sbatch", "sbatch --test-only train.sh", "sbatch --help"]
)
def test_a_line_that_submits_nothing_is_refused(line: str) -> None:
    with pytest.raises(ConfigurationError):
        made(line)


@pytest.mark.parametrize("after", ["12; true", "12,13", "--x", "12_"])
def test_what_is_no_job_id_never_reaches_the_line(after: str) -> None:
    with pytest.raises(ConfigurationError, match="not a SLURM job id"):
        made("sbatch train.sh", after=after)


def test_an_option_at_the_end_without_its_value_does_not_hang() -> None:
    options, rest = split(["-N"])
    assert [option.words for option in options] == [("-N",)]
    assert rest == []
