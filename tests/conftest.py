"""Plumbing of the marks: a capability must exist, a missing part is a visible skip or, in CI, a failure."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import kept_running
from faults.chaos import short_form
from house import capabilities, failures, parts, turns
from house.cases import SERVICES, quick
from midwatch.rules.matching import compiler
from midwatch.rules.prefilter import workloads

FAILURES_TOLD, LINES_TOLD = 3, 12

# Two cores play many tests at once: how long an example takes says nothing of what it shows.
hypothesis.settings.register_profile(
    "facts", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("facts")
_tally = pytest.StashKey[Path]()
_hits = pytest.StashKey[tuple[str, list[str]]]()


@pytest.fixture(scope="session")
def require() -> parts.Require:
    """`require(part, present, how_to_get)`: go on, skip visibly, or fail where CI is set."""
    return parts.require


@pytest.fixture
def small_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that compile many small sets: literals are chosen by less text, and the hits are the same."""
    monkeypatch.setattr(compiler, "usual_background", cache(partial(workloads.background, 1 << 14)))


def pytest_configure(config: pytest.Config) -> None:
    """Before the processes of the run begin, so that all of them know the tally."""
    failures.begin(config)
    if kept := short_form.begin():
        config.stash[_tally] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """The whole suite fails when a failpoint or a fault was never hit."""
    config = session.config
    if _tally not in config.stash:
        return
    table, never_hit = short_form.end(config.stash[_tally])
    ran = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    judged = never_hit if short_form.whole_suite(config) and ran else []
    config.stash[_hits] = table, judged
    config.stash[failures.UNHELD] = judged
    if judged:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse to run when a test names a capability that the catalogue does not have. A quick run leaves out
    what needs a service."""
    known = capabilities.known_ids()
    for item in items:
        for mark in item.iter_markers("capability"):
            if unknown := [str(name) for name in mark.args if name not in known]:
                raise pytest.UsageError(f"{item.nodeid}: docs/capabilities.yaml has no {', '.join(unknown)}")
    if quick():
        left_out = [item for item in items if SERVICES.intersection(getattr(item, "fixturenames", ()))]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
    items[:] = turns.in_order(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Files that share a SLURM or a Ray head go to one process."""
    return turns.scheduler_of(config, log)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """A SLURM or a Ray head ends with the last test of the files that share it."""
    if nextitem is None or turns.turn_of(nextitem.nodeid) != turns.turn_of(item.nodeid):
        kept_running.end_all(item.config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say again, near the end, what failed tests printed last: of a long log only the end may be kept."""
    table, never_hit = terminalreporter.config.stash.get(_hits, ("", []))
    if table:
        terminalreporter.section("faults", sep="-")
        terminalreporter.write_line("\n".join([table, *(f"NOT HELD: {each}" for each in never_hit)]))
    reports = [report for several in terminalreporter.stats.values() for report in several]
    if took := turns.seconds(reports):
        told = ", ".join(f"{turn} {spent:.0f} s" for turn, spent in took.items())
        terminalreporter.write_line(f"What shares a head ran in one process each: {told}.")
    failed = [*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")]
    for report in failed[:FAILURES_TOLD]:
        if printed := report.capstdout.strip():
            terminalreporter.section(f"what {report.nodeid} printed last", sep="-")
            terminalreporter.write_line("\n".join(printed.splitlines()[-LINES_TOLD:]))
