"""What our server processes log, and how it is set."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import logging
from midwatch.agents.cli.serve.process_log import log_to_stderr
from midwatch.streams.settings.file import load_settings
log_to_stderr(load_settings().log_level)
logging.debug("a detail"), logging.info("a fact"), logging.warning("a worry")
"""


@pytest.mark.capability("S002-26")
@pytest.mark.parametrize(
    ("level", "told"),
    [(None, ["a fact", "a worry"]), ("WARNING", ["a worry"]), ("DEBUG", ["a detail", "a fact", "a worry"])],
)
def test_the_level_is_set_by_the_environment(level: str | None, told: list[str]) -> None:
    mine = {name: value for name, value in os.environ.items() if not name.startswith("MIDWATCH_")}
    chosen = {} if level is None else {"MIDWATCH_LOG_LEVEL": level}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=mine | chosen, capture_output=True, text=True, check=True
    )
    assert [line.partition("root ")[2] for line in done.stderr.splitlines()] == told
