"""`midwatch demo` as a newcomer starts it, whole and with a part broken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from first_choices import put_first_choices
from midwatch.agents.demo.judge import read_ledger
from processes import working_in

# The fields of DESIGN 6 that replay and the stream have in common; the file's folder is the caller's.
COMPARED = ("error_type", "family", "subsystem", "transient", "root_line", "root_line_number", "rank", "step")


def _demo(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "midwatch", "demo", f"--directory={directory}", *options]
    return subprocess.run(
        command, cwd=directory.parent, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    directory = tmp_path_factory.mktemp("demo") / "work"
    return directory, _demo(directory, "--patience=150")


@pytest.mark.capability("C-1", "C-2", "C-3", "C-5", "X-38", "C-4")
def test_it_shows_a_rescue_a_finding_and_a_refusal(
    shown: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    directory, done = shown
    assert done.returncode == 0, done.stdout + done.stderr
    ledger = read_ledger((directory / "checkpoints" / "ledger.jsonl").read_text())
    assert [start.first_step for start in ledger.starts] == [1, 41]
    for said in (
        "nccl_timeout",
        "oom",
        "loss",
        "line → incident",
        "restart → done, attempt 1 of ",
        "would fail again",
        str(directory / "logs"),
    ):
        assert said in done.stdout
    assert not [line for line in done.stdout.splitlines() if line.startswith("FAIL")]


def test_it_leaves_no_process_behind(shown: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    assert working_in(shown[0].parent) == []


@pytest.mark.parametrize(("attempt", "action"), [(1, "restart"), (2, "stop")])
def test_replay_says_the_same_of_its_logs(
    shown: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path, attempt: int, action: str
) -> None:
    """The lines of each attempt through `midwatch replay` against what the stream said of it."""
    directory, done = shown
    assert done.returncode == 0
    streamed: dict[str, Any] = json.loads((directory / "verdicts.json").read_text())[str(attempt)]
    command = [sys.executable, "-P", "-m", "midwatch", "replay", "--json"]
    logs = directory / "logs" if attempt == 2 else _before_the_second_start(directory, tmp_path)
    replayed = json.loads(
        subprocess.run([*command, str(logs)], capture_output=True, text=True, check=False, timeout=60).stdout
    )
    root = Path(replayed["verdict"].pop("root_file"))
    assert root.name == Path(streamed.pop("root_file")).name
    assert {f: replayed["verdict"][f] for f in COMPARED} == {f: streamed[f] for f in COMPARED}
    assert replayed["decision"]["action"] == action


def _before_the_second_start(directory: Path, copy: Path) -> Path:
    """The logs as the first attempt left them, by the training's own word of their sizes."""
    starts = [
        json.loads(line) for line in (directory / "checkpoints" / "ledger.jsonl").read_text().splitlines()
    ]
    sizes = [event for event in starts if event["event"] == "start"][1]["logged"]
    assert len(sizes) == 8
    for name, size in sizes.items():
        (copy / name).write_bytes((directory / "logs" / name).read_bytes()[:size])
    return copy


@pytest.mark.parametrize(
    ("part", "fact"),
    [
        ("nccl-rule", "attempt 1 died of an NCCL timeout"),
        ("executor", "it was restarted once"),
        ("redis", "attempt 1 died of an NCCL timeout"),
    ],
)
def test_with_a_part_broken_it_says_which_fact_failed(tmp_path: Path, part: str, fact: str) -> None:
    put_first_choices(tmp_path / "work" / "state")
    done = _demo(tmp_path / "work", f"--without={part}", "--patience=25")
    assert done.returncode == 1, done.stdout + done.stderr
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    assert any(fact in line for line in failed), done.stdout
    assert working_in(tmp_path) == []
