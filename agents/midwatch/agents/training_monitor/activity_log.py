"""The monitor's own log: every act with its time.

`TRAINING_MONITOR_LOG_LEVEL` sets how much it holds, `TRAINING_MONITOR_LOG_FILE` where it goes (else: stdout).
"""

from __future__ import annotations

import logging
import os
import sys
import threading

from midwatch.streams.errors import ConfigurationError

LEVEL, FILE = "TRAINING_MONITOR_LOG_LEVEL", "TRAINING_MONITOR_LOG_FILE"
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_LOGGER = logging.getLogger("midwatch.training_monitor")
_lock = threading.Lock()
_made: tuple[str, str] | None = None


def log() -> logging.Logger:
    """The logger, made ready by the variables as they are now.

    A program that set up logging itself keeps its own handlers, as long as neither variable is set.

    Raises:
        ConfigurationError: the level is none of the four, or the file cannot be written.
    """
    global _made  # noqa: PLW0603 - one log a process
    variables = (os.environ.get(LEVEL, ""), os.environ.get(FILE, ""))
    with _lock:
        if variables != _made:
            _prepare(*variables)
            _made = variables
    return _LOGGER


def _prepare(level: str, file: str) -> None:
    if level and level.upper() not in _LEVELS:
        raise ConfigurationError(
            f"{level!r} is no logging level", where=LEVEL, remedy=f"use {', '.join(_LEVELS)}"
        )
    for old in tuple(_LOGGER.handlers):
        _LOGGER.removeHandler(old)
        old.close()
    _LOGGER.setLevel(level.upper() or logging.INFO)
    _LOGGER.propagate = not (level or file) and logging.getLogger().hasHandlers()
    if _LOGGER.propagate:
        return
    try:
        handler: logging.Handler = logging.FileHandler(file) if file else logging.StreamHandler(sys.stdout)
    except OSError as error:
        raise ConfigurationError(f"it cannot be written: {error.strerror}", where=f"{FILE}={file}") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    _LOGGER.addHandler(handler)
