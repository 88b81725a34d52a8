"""A run of tests leaves in a file what failed in it and why, for the gate to read.

The file is named by the variable FAILED_TESTS. Only the process that leads the run writes it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

PLACE = "FAILED_TESTS"
"""Names the file. It begins without MIDWATCH_: the product refuses variables of that name that it lacks."""

UNHELD = pytest.StashKey[list[str]]()
"""What failed in the whole run and in no test: such as a fault that was never hit."""

_LONGEST = 300


@dataclass(slots=True)
class Run:
    """What a run of tests left behind. `failed` has the first cause of each failed test by its node id.

    `unready` are those of them that never began, because something could not be set up for them. `broken`
    says what else went wrong: an error of collection, a worker that died, a fault never hit.
    """

    exit_code: int
    passed: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    unready: list[str] = field(default_factory=list)


def read(file: Path) -> Run | None:
    """The run that wrote the file; None where it died before its end."""
    try:
        return Run(**json.loads(file.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):
        return None


def begin(config: pytest.Config) -> None:
    """Watch this run if the variable asks for it. What the tests start themselves does not find it."""
    if place := os.environ.pop(PLACE, None):
        config.pluginmanager.register(_Watch(Path(place)))


def cause_of(longrepr: Any) -> str:
    """One line: the assertion or the exception. `longrepr` is that of a report of pytest."""
    message = getattr(getattr(longrepr, "reprcrash", None), "message", "")
    lines = [line for line in str(message or longrepr or "").splitlines() if line.strip()]
    raised = [line for line in lines if line.startswith("E  ")]
    line = (raised or lines or ["no cause was told"])[0].removeprefix("E").strip()
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


class _Watch:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._run = Run(exit_code=-1)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and report.when not in ("setup", "call", "teardown"):  # xdist: its worker is gone
            self._run.broken.append(f"{report.nodeid}: {cause_of(report.longrepr)}")
        elif report.failed:
            self._run.failed.setdefault(report.nodeid, cause_of(report.longrepr))
            if report.when == "setup":
                self._run.unready.append(report.nodeid)
        elif report.passed and report.when == "call":
            self._run.passed += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            told = f"{report.nodeid} could not be collected: {cause_of(report.longrepr)}"
            self._run.broken += [told] if told not in self._run.broken else []  # each worker collects

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._run.exit_code = int(session.exitstatus)
        unheld: list[str] = session.config.stash.get(UNHELD, [])
        self._run.broken.extend(unheld)
        self._file.write_text(json.dumps(asdict(self._run)), encoding="utf-8")
