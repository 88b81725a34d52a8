"""A `ray job submit` line is read as Ray's client reads it; what becomes of it is kept beside the spec."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from midwatch.agents.launch.ray_submission import EntrypointSidecar, RaySubmission, keep_ray_submission
from midwatch.agents.schedulers.base import StartSpec
from midwatch.agents.schedulers.ray.submission import body
from midwatch.agents.schedulers.ray.submit_argv import read_line
from midwatch.streams.errors import ConfigurationError, UsageError

HEAD = "http://head:8265"
SUBMIT = ("ray", "job", "submit")


def keep(folder: Path, *words: str, **more: object) -> RaySubmission:
    return keep_ray_submission(
        (*SUBMIT, *words),
        cwd=folder,
        folder=folder / "kept",
        address=HEAD,
        environment={},
        **more,  # type: ignore[arg-type]  # of the one function that takes them
    )


def request(folder: Path, kept: RaySubmission, **variables: str) -> dict[str, object]:
    spec = StartSpec(kept.argv, str(folder), {"MIDWATCH_JOB": "ray:ann/x", **variables})
    return body(spec, "a1", "python")[0]


def test_every_option_of_the_line_arrives() -> None:
    line = read_line(
        (
            *SUBMIT,
            "--address=http://head:8265",
            "--submission-id",
            "run-1",
            "--no-wait",
            "--working-dir",
            ".",
            "--metadata-json",
            '{"team": "nlp"}',
            "--entrypoint-num-cpus=0.5",
            "--entrypoint-num-gpus",
            "2",
            "--entrypoint-memory",
            "1000",
            "--entrypoint-resources",
            '{"tpu": 1}',
            "--",
            "python",
            "t.py",
            "--address=mine",
        )
    )
    assert line.entrypoint == ("python", "t.py", "--address=mine")
    assert (line.address, line.submission_id, line.working_dir) == (HEAD, "run-1", ".")
    assert line.fields == {
        "metadata": {"team": "nlp"},
        "entrypoint_num_cpus": 0.5,
        "entrypoint_num_gpus": 2,
        "entrypoint_memory": 1000,
        "entrypoint_resources": {"tpu": 1},
    }


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--nonsense", "--", "x"), "has no option"),
        (("--working-dir",), "has no value"),
        (("--no-wait",), "no entrypoint"),
        (("--submission-id", "a/b", "--", "x"), "cannot be a submission id"),
        (("--entrypoint-num-gpus", "many", "--", "x"), "cannot be read"),
        (("--metadata-json", "[]", "--", "x"), "no JSON object"),
        (("--headers", "{}", "--", "x"), "ray.token_file"),
        (("--address", "http://other:1", "--", "x"), "another head"),
        (("--working-dir", "nowhere", "--", "x"), "no directory"),
    ],
)
def test_a_line_that_makes_no_sense_starts_nothing(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why) as wrong:
        keep(tmp_path, *words)
    assert wrong.value.remedy


def test_without_a_head_in_the_settings_nothing_is_sent_anywhere(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no Ray head"):
        keep_ray_submission((*SUBMIT, "--", "x"), cwd=tmp_path, folder=tmp_path, address="", environment={})


def test_the_request_holds_the_persons_environment_and_ours_wins(tmp_path: Path) -> None:
    runtime = {"env_vars": {"MODE": "fast", "MIDWATCH_ATTEMPT": "9"}, "pip": ["x"]}
    (tmp_path / "env.yaml").write_text(json.dumps(runtime))
    kept = keep(tmp_path, "--runtime-env", "env.yaml", "--", "python", "t.py", "--name", "a b")
    sent = request(tmp_path, kept, MIDWATCH_ATTEMPT="2")
    assert sent["entrypoint"] == "exec python t.py --name 'a b'"
    assert sent["runtime_env"] == {
        "env_vars": {"MODE": "fast", "MIDWATCH_ATTEMPT": "2", "MIDWATCH_JOB": "ray:ann/x"},
        "pip": ["x"],
    }
    assert sent["metadata"] == {"midwatch_job": "ray:ann/x"}
    assert sent["submission_id"] == "a1"


def test_a_secret_in_the_environment_stays_out_of_the_spec_and_is_warned_of(tmp_path: Path) -> None:
    runtime = '{"env_vars": {"HF_TOKEN": "s3cret"}}'
    kept = keep(tmp_path, "--runtime-env-json", runtime, "--", "python", "t.py")
    assert "s3cret" not in " ".join(kept.argv)
    assert "--secret HF_TOKEN=FILE" in kept.warnings[0]
    referenced = keep(tmp_path, "--", "python", "t.py", secret_files=("HF_TOKEN=/run/secrets/hf token",))
    assert referenced.warnings == ()
    assert request(tmp_path, referenced)["entrypoint"] == (
        "export HF_TOKEN=\"$(cat '/run/secrets/hf token')\"; exec python t.py"
    )
    for wrong in ("HF_TOKEN", "A B=/x", "HF_TOKEN=relative"):
        with pytest.raises(UsageError, match="NAME=FILE"):
            keep(tmp_path, "--", "x", secret_files=(wrong,))


def test_the_sidecar_stands_before_the_entrypoint(tmp_path: Path) -> None:
    kept = keep(tmp_path, "--", "python", "t.py", sidecar=EntrypointSidecar(("/logs/a.log",), 2))
    assert request(tmp_path, kept)["entrypoint"] == (
        "exec python -P -m midwatch.agents.launch.shim --job ray:ann/x --nodes 2 --log /logs/a.log"
        " -- python t.py"
    )


def test_a_kept_submission_that_somebody_changed_is_refused(tmp_path: Path) -> None:
    kept = keep(tmp_path, "--", "python", "t.py")
    file = next((tmp_path / "kept").glob("*.json"))
    file.write_text(file.read_text().replace("{", "{ ", 1))
    with pytest.raises(ConfigurationError, match="was changed"):
        request(tmp_path, kept)
    file.unlink()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        request(tmp_path, kept)


def test_a_package_leaves_out_what_the_ignore_files_name(tmp_path: Path) -> None:
    code = tmp_path / "code"
    for name in ("a.py", "data/big.bin", "data/keep.bin", "logs/x.log", "inner/skip/b.py", "inner/c.tmp"):
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text(name)
    (code / ".gitignore").write_text("# data\n*.bin\n!keep.bin\n/logs/\n")
    (code / "inner" / ".rayignore").write_text("skip\n")
    options = ("--working-dir", "code", "--runtime-env-json", '{"excludes": ["**/*.tmp"]}')
    first = keep(tmp_path, *options, "--", "python", "a.py")
    packages = list((tmp_path / "kept").glob("*.zip"))
    assert len(packages) == 1
    with zipfile.ZipFile(packages[0]) as archive:
        assert sorted(archive.namelist()) == [".gitignore", "a.py", "data/keep.bin", "inner/.rayignore"]
    (code / "a.py").touch()
    assert keep(tmp_path, *options, "--", "python", "a.py").argv == first.argv, (
        "the same content, one package"
    )


def test_python_modules_travel_with_their_own_folder(tmp_path: Path) -> None:
    module = tmp_path / "tools"
    module.mkdir()
    (module / "__init__.py").write_text("")
    runtime = json.dumps({"py_modules": ["tools", "https://x/y.whl"]})
    keep(tmp_path, "--runtime-env-json", runtime, "--", "python", "t.py")
    with zipfile.ZipFile(next((tmp_path / "kept").glob("*.zip"))) as archive:
        assert archive.namelist() == ["tools/__init__.py"]
