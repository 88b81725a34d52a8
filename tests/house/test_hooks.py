"""The pre-commit hooks: a valid file, and tools that come from the lock alone."""

from __future__ import annotations

import subprocess
import sys

import yaml

from house.tree import ROOT

CONFIGURATION = ROOT / ".pre-commit-config.yaml"


def test_pre_commit_accepts_them() -> None:
    command = [sys.executable, "-m", "pre_commit", "validate-config", str(CONFIGURATION)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_they_fetch_nothing() -> None:
    repositories = yaml.safe_load(CONFIGURATION.read_text(encoding="utf-8"))["repos"]
    assert [repository["repo"] for repository in repositories] == ["local"]
    assert {hook["language"] for hook in repositories[0]["hooks"]} == {"system"}
