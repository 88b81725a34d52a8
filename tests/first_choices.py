"""Literals for the shipped rules, chosen once for all tests: where they lie, match starts as a second time.

A first start on a machine chooses them in a process of its own, for seconds of a core. The tests start some
hundred installations; those that are not about a first start find the choice made.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from midwatch.agents.bundles import combined
from midwatch.agents.reload.kept_choices import KeptChoices
from midwatch.agents.rule_admission import divided
from midwatch.rules.choice import Choice
from midwatch.rules.learning import choice_for
from midwatch.rules.loader import load_bundle
from midwatch.rules.model import Rule
from midwatch.streams.settings import Settings

PLACE = "FIRST_CHOICES"
"""Names the directory, the same for all processes of a run of tests; a benchmark has none."""


@cache
def _made(directory: Path) -> Path:
    """All test processes come here; the first one makes it, the others wait for that."""
    directory.mkdir(exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(directory.glob("*.choice")):
            shipped, own = divided(combined(map(load_bundle, Settings().rules.presets)))
            KeptChoices(directory).write(choice_for((*shipped, *own), ()))
    return directory


def first_choice(rules: Sequence[Rule]) -> Choice | None:
    """What was chosen once for all tests, if it is for these rules."""
    return KeptChoices(_made(Path(os.environ[PLACE]))).read(tuple(rules))


def put_first_choices(state_directory: Path) -> None:
    """Before the installation of this state directory starts for the first time. Outside a run of tests
    nothing is put there: what is measured begins as a user's does."""
    if PLACE not in os.environ:
        return
    made = _made(Path(os.environ[PLACE]))
    state_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copytree(made, state_directory / "cache", ignore=shutil.ignore_patterns("lock"))
