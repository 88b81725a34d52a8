"""Real healthy logs that lie beside the checkout on some machines; used in place, never copied."""

from __future__ import annotations

from pathlib import Path

import pytest

_FOLDER = Path(__file__).parents[4] / "shared" / "data" / "logs"

# By name: the other files of that folder end in a failure.
_HEALTHY = ("bigscience_", "deepspeed_", "loghub_", "ml11_", "ml4_dell", "ml4_fujitsu", "ml4_nvidia")


@pytest.fixture(scope="session")
def healthy_logs() -> list[Path]:
    """The files, or a visible skip where they are not."""
    found = sorted(path for path in _FOLDER.glob("*") if path.name.startswith(_HEALTHY))
    if not found:
        pytest.skip("the real healthy logs do not lie beside this checkout (../shared/data/logs)")
    return found
