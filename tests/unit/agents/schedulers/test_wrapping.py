"""What `midwatch run` makes of a command line, and that a restart runs what was signed."""

from __future__ import annotations

import getpass
import resource
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch.agents.launch.submission import Sending, keep, kept_submission, sending, tasks_of
from midwatch.agents.launch.variables import allowed
from midwatch.agents.schedulers.environment_file import keep_environment
from midwatch.agents.schedulers.resume import ResumePoint
from midwatch.agents.schedulers.wrapping import (
    file_name,
    is_kept,
    partitions_of,
    script_of,
    start_spec,
    wrapped_script,
)
from midwatch.agents.signing import spec_hash
from midwatch.streams.errors import ConfigurationError, UsageError
from midwatch.streams.records import Spec

SCRIPT = b"""#!/bin/bash -l
#SBATCH --nodes=2
#SBATCH -t 10
# a remark

#SBATCH --gres=gpu:8
module load cuda
#SBATCH --too-late
srun python train.py "$1"
"""


def spec(**changes: object) -> Spec:
    made = Spec(
        job="local:ann/r",
        cluster="local",
        argv=("python", "train.py", "--lr", "1e-4"),
        cwd="/home/ann",
        environment={"NCCL_DEBUG": "INFO"},
        user="ann",
        log_paths=("/home/ann/a.log",),
        checkpoint_directory="",
        policy="verdict",
        armed=True,
        nodes=3,
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # any field


def test_a_local_job_is_started_under_the_shim_with_its_own_words_untouched() -> None:
    made = start_spec(spec(), attempt=2, exclude_nodes="n1")
    assert made.argv[0] == sys.executable
    assert made.argv[made.argv.index("--") + 1 :] == ("python", "train.py", "--lr", "1e-4")
    assert made.environment == {
        "NCCL_DEBUG": "INFO",
        "MIDWATCH_JOB": "local:ann/r",
        "MIDWATCH_ATTEMPT": "2",
    }
    assert (made.cwd, made.user, made.exclude_nodes) == ("/home/ann", "ann", "n1")


@pytest.mark.parametrize("export", ["ALL", "NONE", "NCCL_DEBUG,HOME"])
def test_a_spec_that_replaces_one_with_variables_describes_the_same_start(
    tmp_path: Path, export: str
) -> None:
    script = SCRIPT.replace(b"#SBATCH -t 10", f"#SBATCH --export={export}".encode())
    (tmp_path / file_name(script)).write_bytes(script)
    path = keep_environment(tmp_path, {"NCCL_DEBUG": "INFO"})
    for argv in (("python", "train.py"), ("sbatch", str(tmp_path / file_name(script)))):
        old = spec(argv=argv, user=getpass.getuser())
        new = replace(old, environment={}, environment_file=str(path), replaces=spec_hash(old))
        assert start_spec(new, attempt=2) == start_spec(old, attempt=2)


def submission(tmp_path: Path, *argv: str, **environment: str) -> tuple[str, ...]:
    (tmp_path / "train.sh").write_bytes(SCRIPT)
    return kept_submission(
        ("sbatch", *argv),
        cwd=tmp_path,
        scripts=tmp_path / "kept",
        environment=environment,
        job="slurm:ann/r",
        nodes=1,
        log_paths=("/logs/it's.log",),
    )


def test_the_persons_options_and_arguments_stay_and_the_script_is_replaced(tmp_path: Path) -> None:
    argv = submission(tmp_path, "-N2", "--parsable", "--wait", "train.sh", "7", "--flag")
    assert argv[:2] == ("sbatch", "-N2")
    assert argv[-2:] == ("7", "--flag")
    assert "--job-name=train.sh" in argv
    assert "--parsable" not in argv
    assert "--wait" not in argv
    assert script_of(argv).parent == tmp_path / "kept"


def test_the_wrapped_script_keeps_the_sbatch_lines_that_sbatch_would_read(tmp_path: Path) -> None:
    outer = script_of(submission(tmp_path, "train.sh")).read_bytes()
    lines = outer.splitlines()
    assert [line for line in lines if line.startswith(b"#SBATCH")] == [
        b"#SBATCH --nodes=2",
        b"#SBATCH -t 10",
        b"#SBATCH --gres=gpu:8",
    ]
    inner = tmp_path / "kept" / file_name(SCRIPT)
    assert inner.read_bytes() == SCRIPT
    assert str(inner).encode() in lines[-1]


def test_a_wrapped_script_hands_every_word_on_unchanged(tmp_path: Path) -> None:
    shim = tmp_path / "shim"
    shim.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done\n')
    shim.chmod(0o755)
    inner, logs = Path("/kept/in ner.sh"), ("/logs/it's $HOME.log",)
    text = wrapped_script(SCRIPT, inner=inner, job="slurm:ann/r", nodes=1, log_paths=logs)
    outer = tmp_path / "outer.sh"
    outer.write_bytes(text.replace(b"exec '" + sys.executable.encode() + b"'", f"exec '{shim}'".encode()))
    done = subprocess.run(["sh", str(outer), "a b", "$x"], capture_output=True, text=True, check=True)
    words = done.stdout.splitlines()
    assert "/logs/it's $HOME.log" in words
    assert words[words.index("--") + 1 :] == ["/kept/in ner.sh", "a b", "$x"]


def test_wrap_becomes_a_script_as_sbatch_makes_it_one(tmp_path: Path) -> None:
    argv = submission(tmp_path, "-n1", "--wrap", "echo hello")
    assert "--wrap" not in argv
    assert (tmp_path / "kept" / file_name(b"#!/bin/sh\necho hello\n")).exists()


def sent(tmp_path: Path, *argv: str, **environment: str) -> Sending:
    (tmp_path / "train.sh").write_bytes(SCRIPT)
    ours = {"MIDWATCH_CONFIG": "/m.yaml"}
    return sending(("sbatch", *argv), cwd=tmp_path, environment=environment, ours=ours)


def test_no_value_of_a_variable_stays_in_the_line_that_the_spec_holds(tmp_path: Path) -> None:
    line = ("--export", "A,B=secret", "--export-file=vars", "--export=C=secret", "train.sh")
    assert not [word for word in submission(tmp_path, *line) if "secret" in word or "export" in word]


def test_the_first_start_gets_our_variables_too_where_export_names_some(tmp_path: Path) -> None:
    made = sent(tmp_path, "--export=A,C=secret", "train.sh", A="1", B="2")
    assert (made.words, made.by_file) == (("--export=ALL",), True)
    assert {n: v for n, v in made.kept.items() if not n.startswith(("SLURM_RLIMIT_", "SLURM_UMASK"))} == {
        "A": "1",
        "C": "secret",
        "MIDWATCH_CONFIG": "/m.yaml",
        "SLURM_EXPORT_ENV": "A,C=secret",
        "SLURM_GET_USER_ENV": "1",
        "SLURM_JOB_NAME": "train.sh",
    }


@pytest.mark.parametrize(
    ("words", "variables", "name"),
    [
        (("train.sh",), {"SLURM_JOB_NAME": "of-the-job-around-it"}, "train.sh"),
        (("-J", "short", "--export=NONE", "train.sh"), {"SBATCH_JOB_NAME": "variable"}, "short"),
        (("--job-name=one", "--job-name=two", "train.sh"), {}, "two"),
        (("train.sh",), {"SBATCH_JOB_NAME": "variable"}, "variable"),
        (("--export-file=vars", "named.sh"), {}, "in-script"),
        (("--wrap", "hostname"), {}, "wrap"),
    ],
)
def test_a_restart_finds_the_name_that_sbatch_gives_the_job(
    tmp_path: Path, words: tuple[str, ...], variables: dict[str, str], name: str
) -> None:
    """sbatch sets it, except where a job's variables come from an `--export-file`."""
    (tmp_path / "vars").write_bytes(b"A=1\0")
    (tmp_path / "named.sh").write_text("#!/bin/sh\n#SBATCH -J in-script\nhostname\n")
    assert sent(tmp_path, *words, **variables).kept["SLURM_JOB_NAME"] == name


def test_the_limits_of_the_shell_go_along_as_sbatch_sends_them(tmp_path: Path) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert sent(tmp_path, "train.sh").kept["SLURM_RLIMIT_NOFILE"] == str(soft)
    assert sent(tmp_path, "--propagate=NOFILE", "train.sh").kept["SLURM_RLIMIT_NOFILE"] == f"U{soft}"


def test_a_persons_file_of_variables_is_sent_and_kept(tmp_path: Path) -> None:
    (tmp_path / "vars").write_bytes(b"A=1\0B=two words\0")
    made = sent(tmp_path, "--export-file=vars", "train.sh", C="3")
    assert made.by_file
    assert {name: made.kept.get(name) for name in "ABC"} == {"A": "1", "B": "two words", "C": None}
    with pytest.raises(UsageError, match="cannot be read"):
        sent(tmp_path, "--export-file=absent", "train.sh")


def test_what_only_the_job_around_it_has_is_not_sent(tmp_path: Path) -> None:
    outer = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3", "SLURM_RESTART_COUNT": "1"}
    made = sent(tmp_path, "train.sh", **outer, SLURM_CONF="/c", MIDWATCH_ATTEMPT="2")
    for variables in (made.environment, made.kept):
        assert not variables.keys() & {*outer, "MIDWATCH_ATTEMPT"}
        assert variables["SLURM_CONF"] == "/c"


def test_variables_that_choose_where_a_job_runs_become_options(tmp_path: Path) -> None:
    argv = submission(tmp_path, "-p", "debug", "train.sh", SBATCH_ACCOUNT="proj", SBATCH_PARTITION="prod")
    assert "--account=proj" in argv
    assert "--partition=prod" not in argv, "what stands on the line counts"


def test_what_submits_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        submission(tmp_path, "--test-only", "x")


@pytest.mark.parametrize("words", [["--array=1-3"], ["-a", "1-3"], ["-a1-3"]])
def test_the_tasks_of_an_array_have_names_and_logs_of_their_own(tmp_path: Path, words: list[str]) -> None:
    argv = submission(tmp_path, *words, "train.sh")
    assert argv[-2] == "--array=1-3"
    assert "/r_%a'" in script_of(argv).read_text()
    assert tasks_of(("sbatch", *words, "train.sh"), tmp_path, {}) == (1, 2, 3)
    assert tasks_of(("sbatch", "train.sh"), tmp_path, {}) == ()


def test_a_line_without_a_script_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no script"):
        submission(tmp_path, "-N2")
    with pytest.raises(UsageError, match="cannot be read"):
        submission(tmp_path, "absent.sh")


@pytest.mark.parametrize(
    ("option", "line", "export"),
    [
        ("", "", ""),
        ("--export=ALL,A=b", "--export=NONE", ""),
        ("--export=NIL", "", ""),
        ("--export=NONE", "", "MIDWATCH_ATTEMPT,MIDWATCH_RESUME_FROM,MIDWATCH_RESUME_STEP"),
        ("", "--export=A,B", "A,B,MIDWATCH_ATTEMPT,MIDWATCH_RESUME_FROM,MIDWATCH_RESUME_STEP"),
    ],
)
def test_where_only_some_variables_may_reach_the_job_ours_are_named_too(
    tmp_path: Path, option: str, line: str, export: str
) -> None:
    (tmp_path / "other.sh").write_text(f"#!/bin/sh\n#SBATCH {line}\nhostname\n")
    program, *words = submission(tmp_path, "other.sh")
    argv = (program, *filter(None, [option]), *words)  # as an earlier midwatch signed it
    point = ResumePoint(40, "/ckpt/step_40", "/ckpt", 0)
    made = start_spec(spec(argv=argv, cluster="slurm"), attempt=2, resume=point)
    assert made.export == export


def test_a_restart_is_told_the_span_that_its_own_spans_hang_under(tmp_path: Path) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert start_spec(spec(), attempt=2, trace=trace).environment["TRACEPARENT"] == trace
    assert "TRACEPARENT" not in start_spec(spec(), attempt=2).environment
    program, *words = submission(tmp_path, "train.sh")
    argv = (program, "--export=NONE", *words)  # as an earlier midwatch signed it
    for chooses in (False, True):
        made = start_spec(spec(argv=argv, cluster="slurm"), attempt=2, trace=trace, chooses=chooses)
        assert made.environment["TRACEPARENT"] == trace
        assert "TRACEPARENT" in made.export.split(",")


def test_a_script_that_was_changed_after_it_was_signed_is_not_started(tmp_path: Path) -> None:
    argv = submission(tmp_path, "train.sh")
    made = start_spec(spec(argv=argv, cluster="slurm"), attempt=2)
    assert made.argv == argv
    script_of(argv).write_bytes(b"#!/bin/sh\nrm -rf /\n")
    with pytest.raises(ConfigurationError, match="changed after it was signed"):
        start_spec(spec(argv=argv, cluster="slurm"), attempt=2)
    script_of(argv).unlink()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        start_spec(spec(argv=argv, cluster="slurm"), attempt=2)


@pytest.mark.parametrize(
    ("options", "line", "named"),
    [
        (["-p", "a,b"], b"#SBATCH -p c", ("a", "b")),
        (["--partition=a"], b"", ("a",)),
        ([], b"#SBATCH --partition=c  # where it runs", ("c",)),
        (["-N2"], b"#SBATCH --time=5", ()),
    ],
)
def test_the_partition_is_the_one_that_sbatch_would_take(
    options: list[str], line: bytes, named: tuple[str, ...]
) -> None:
    argv = ("sbatch", *options, "train.sh", "-p", "an-argument-of-the-script")
    assert partitions_of(argv, b"#!/bin/sh\n" + line + b"\nsrun x\n#SBATCH -p late\n") == named


def test_many_runs_of_one_script_at_once_keep_one_whole_copy(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for number in range(50):
            content = SCRIPT + b"#" * number
            kept = set(pool.map(keep, [tmp_path] * 8, [content] * 8))
            assert [path.read_bytes() for path in kept] == [content]
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o700}


def test_a_script_that_an_earlier_midwatch_kept_open_to_others_is_closed_when_it_is_kept_again(
    tmp_path: Path,
) -> None:
    secret = SCRIPT + b"#SBATCH --export=ALL,TOKEN=hunter2"
    keep(tmp_path, secret).chmod(0o755)
    assert stat.S_IMODE(keep(tmp_path, secret).stat().st_mode) == 0o700


def test_only_a_name_that_is_a_hash_claims_to_vouch(tmp_path: Path) -> None:
    assert is_kept(keep(tmp_path, SCRIPT))
    assert not is_kept(Path("scripts/train.sh"))


def test_variables_pass_by_name_and_secrets_only_when_asked_for() -> None:
    given = {
        "PATH": "/bin",
        "NCCL_DEBUG": "INFO",
        "WANDB_API_KEY": "x",
        "HF_TOKEN": "y",
        "EDITOR": "vi",
        "MIDWATCH_KAFKA__PASSWORD": "z",
        "MIDWATCH_KAFKA__PASSWORD_FILE": "/etc/secret",
        "MIDWATCH_SHIP__POLL": "1s",
        "MIDWATCH_JOB": "local:ann/another",
    }
    assert allowed(given) == {
        "PATH": "/bin",
        "NCCL_DEBUG": "INFO",
        "MIDWATCH_KAFKA__PASSWORD_FILE": "/etc/secret",
        "MIDWATCH_SHIP__POLL": "1s",
    }
    assert "HF_TOKEN" in allowed(given, ["HF_TOKEN"])
