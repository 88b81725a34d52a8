"""The command `midwatch` as a person meets it, without Kafka or Redis."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from midwatch.agents import cli
from midwatch.agents.cli import COMMANDS, LazyGroup, run

HEAVY = {"faust", "kafka", "aiokafka", "redis", "rich", "yaml", "msgspec", "orjson", "re2", "asyncio", "ssl"}
"""What a list of commands has no use for."""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but the test's own."""
    for name in [name for name in os.environ if name.startswith("MIDWATCH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_help_lists_every_command_and_imports_nothing_heavy() -> None:
    done = python("-X", "importtime", "-m", "midwatch", "--help")
    assert done.returncode == 0
    for name, target in COMMANDS.items():
        assert name in done.stdout
        assert target.summary.split()[0] in done.stdout
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "click" in imported
    assert not imported & HEAVY


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_of_the_list_is_there_and_explains_itself(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: midwatch {name}")


def test_a_command_that_is_no_click_command_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "odd", cli.Target("json:dumps", "Odd."))
    group = cli.midwatch
    assert isinstance(group, LazyGroup)
    with pytest.raises(TypeError, match="no click command"):
        group.get_command(click.Context(group), "odd")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["frob"], 2, "No such command 'frob'"),
        (["why"], 2, "Missing argument 'JOB'"),
        (["why", "x", "--frob"], 2, "No such option"),
        (["why", "x", "--set", "kafka.bootsrap=a:1"], 2, "did you mean kafka.bootstrap=…?"),
        (["why", "x", "--set", "kafka.bootstrap"], 2, "is not KEY=VALUE"),
        (["why", "x", "--set", "kafka.password=p"], 2, "every user of this machine can read a command line"),
        (["why", "x", "--set", "ship.interval=5"], 3, "--set ship.interval: ship.interval: 5 has no unit"),
        (["why", "x", "--config", "absent.yaml"], 3, "absent.yaml: the settings file cannot be read"),
        (["why", "x"], 4, "kafka.bootstrap: the settings name no Kafka, and no `midwatch up` runs"),
        (["why", "x", "--set", "kafka.bootstrap=127.0.0.1:1", "--set", "redis.url=redis://x"], 4, "refused"),
        (["worker", "match"], 4, "start `midwatch up`, or set kafka.bootstrap"),
        (["worker", "watch"], 2, "'watch' is not one of"),
        (["jobs", "--since", "5"], 4, "the settings name no Kafka"),
    ],
)
def test_what_goes_wrong_has_its_exit_code_and_its_words_on_standard_error(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert said in told.err


def test_with_json_an_error_is_an_object_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", "--json"]) == 4
    body = json.loads(capsys.readouterr().out)
    assert body["version"] == 1
    assert body["error"]["exit_code"] == 4
    assert body["error"]["where"] == "kafka.bootstrap"
    assert "midwatch up" in body["error"]["remedy"]


def test_every_mistake_of_a_settings_file_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("midwatch.yaml").write_text("shp: {}\nship: {interval: 5}\n")
    assert run(["jobs"]) == 3
    told = capsys.readouterr().err
    assert "midwatch.yaml:1:1: unknown key 'shp'" in told
    assert "midwatch.yaml:2:18: ship.interval: 5 has no unit" in told


def test_the_reader_of_a_pipe_may_leave() -> None:
    command = f"{sys.executable} -m midwatch --help | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_doctor_without_anything_says_what_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json"]) == 4
    body = json.loads(capsys.readouterr().out)
    assert body["failed"][0]["where"] == "kafka.bootstrap"
    assert body["settings"]["watch"] == {"mode": "observe"}


def test_doctor_says_that_the_jobs_of_kuberay_are_only_observed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--set", "ray.address=http://head.example.invalid:8265"]) == 4
    shown = capsys.readouterr().out
    assert "Ray: midwatch acts on the submissions that `midwatch run` made." in shown
    assert (
        "only observes all others, such as those of a RayJob of KubeRay, whose backoffLimit restarts" in shown
    )
    assert run(["doctor"]) == 4
    assert "KubeRay" not in capsys.readouterr().out


def test_doctor_tells_of_secrets_that_everybody_can_read(capsys: pytest.CaptureFixture[str]) -> None:
    Path("secret").write_text("canary-of-the-test\n")
    Path("secret").chmod(0o644)
    Path("midwatch.yaml").write_text(
        "kafka: {bootstrap: ['broker.example.invalid:9092'], username: u, password_file: secret}\n"
        "redis: {url: 'redis://redis.example.invalid:6379/0'}\n"
    )
    assert run(["doctor"]) == 4
    told = capsys.readouterr().out
    assert "every user of this machine can read" in told
    assert "broker.example.invalid:9092 has no TLS" in told
    assert "the connection to Redis has no TLS" in told
    assert "the name broker.example.invalid is not known" in told
    assert "canary" not in told


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.strip().count(".") == 2
