"""Services, an executor's world, and the package of `docs/extending.md`, found by this process too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded_stack import embedded, stack
from foreign_package import forget, install

__all__ = ["embedded", "stack"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package is installed."""
    return install(tmp_path_factory.mktemp("parts"))


@pytest.fixture
def installed(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The same, on this process's own path."""
    monkeypatch.syspath_prepend(built)
    forget()
    yield built
    forget()
