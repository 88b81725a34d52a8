"""Plumbing of the marks: a capability must exist, a missing part is a visible skip or, in CI, a failure.

Where tests run side by side, a file stays with one worker, because its fixtures are processes; so do all
tests of one SLURM, because only one may install it.
"""

from __future__ import annotations

import pytest

from house import capabilities, parts


@pytest.fixture(scope="session")
def require() -> parts.Require:
    """`require(part, present, how_to_get)`: go on, skip visibly, or fail where CI is set."""
    return parts.require


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group the tests; refuse to run when one names a capability that the catalogue does not have."""
    known = capabilities.known_ids()
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
        for mark in item.iter_markers("capability"):
            if unknown := [str(name) for name in mark.args if name not in known]:
                raise pytest.UsageError(f"{item.nodeid}: docs/capabilities.yaml has no {', '.join(unknown)}")


def _group(item: pytest.Item) -> str:
    fixtures: list[str] = getattr(item, "fixturenames", [])
    return "slurm" if any(name.startswith("slurm") for name in fixtures) else item.nodeid.partition("::")[0]
