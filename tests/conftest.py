"""Plumbing of the marks: a capability must exist, a missing part is a visible skip or, in CI, a failure."""

from __future__ import annotations

import pytest

from house import capabilities, parts


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
