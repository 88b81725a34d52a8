"""A log filter for the Kafka libraries and Faust. It drops false alarms and bounds repetition.

Put it on handlers, not on loggers: a logger's filter does not see the records of its children.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

WINDOW_S = 10.0
PER_WINDOW = 5
"""How many records of one message of one logger may pass in a window."""
NOISY = ("aiokafka", "faust", "kafka", "mode")
FALSE_ALARMS = (
    "in the clear",  # SASL_PLAINTEXT on loopback, once per connection
    "Has not committed",  # Faust judges by its own acks, which decide nothing here
    "Stream has not started processing",
    "Stream stopped processing",
    "Aiokafka has not",
    "Timer ",  # "woke up too late", after every SIGSTOP and on every busy machine
    "Missing sensor state for rebalance",
)


class KafkaNoise(logging.Filter):
    """Passes midwatch's own records, and at most `PER_WINDOW` of one kind from the Kafka libraries.

    The filter counts the records that it drops. The next passing record of the kind shows the count.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[tuple[str, str], list[float]] = {}
        self._dropped: dict[tuple[str, str], int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith(NOISY) or record.levelno >= logging.CRITICAL:
            return True
        template = str(record.msg)
        if any(alarm in template for alarm in FALSE_ALARMS):
            return False
        kind = (record.name, template[:60])
        now = self._clock()
        times = [at for at in self._kinds.get(kind, ()) if now - at < WINDOW_S]
        if len(times) >= PER_WINDOW:
            self._dropped[kind] = self._dropped.get(kind, 0) + 1
            self._kinds[kind] = times
            return False
        self._kinds[kind] = [*times, now]
        if dropped := self._dropped.pop(kind, 0):
            record.msg, record.args = f"{record.getMessage()} (and {dropped} more like it)", ()
        return True


def quieten() -> None:
    """Adds the filter to every handler of the root logger. A second call does no harm."""
    for handler in logging.getLogger().handlers:
        if not any(isinstance(known, KafkaNoise) for known in handler.filters):
            handler.addFilter(KafkaNoise())
