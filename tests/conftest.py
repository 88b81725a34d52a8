"""Plumbing of the marks: a capability must exist, a missing part is a visible skip or, in CI, a failure."""

from __future__ import annotations

import pytest

from house import capabilities, parts

FAILURES_TOLD, LINES_TOLD = 3, 12


@pytest.fixture(scope="session")
def require() -> parts.Require:
    """`require(part, present, how_to_get)`: go on, skip visibly, or fail where CI is set."""
    return parts.require


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse to run when a test names a capability that the catalogue does not have."""
    known = capabilities.known_ids()
    for item in items:
        for mark in item.iter_markers("capability"):
            if unknown := [str(name) for name in mark.args if name not in known]:
                raise pytest.UsageError(f"{item.nodeid}: docs/capabilities.yaml has no {', '.join(unknown)}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say again, near the end, what failed tests printed last: of a long log only the end may be kept."""
    failed = [*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")]
    for report in failed[:FAILURES_TOLD]:
        if printed := report.capstdout.strip():
            terminalreporter.section(f"what {report.nodeid} printed last", sep="-")
            terminalreporter.write_line("\n".join(printed.splitlines()[-LINES_TOLD:]))
