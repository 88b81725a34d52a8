"""A filter for what the Kafka libraries and Faust print: false alarms go, and repetition is bounded.

Put it on handlers, not loggers: a logger's filter does not see what its children log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

WINDOW_S = 10.0
PER_WINDOW = 5
"""How often one message of one logger may pass in a window."""
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
    """Lets our own records pass untouched; of the Kafka libraries' at most a few of a kind in a while.

    What is held back is counted, and the count is told with the next one of its kind that passes.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[tuple[str, str], list[float]] = {}
        self._held: dict[tuple[str, str], int] = {}

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
            self._held[kind] = self._held.get(kind, 0) + 1
            self._kinds[kind] = times
            return False
        self._kinds[kind] = [*times, now]
        if held := self._held.pop(kind, 0):
            record.msg, record.args = f"{record.getMessage()} (and {held} more like it)", ()
        return True


def quieten() -> None:
    """Give every handler of the root logger the filter; once is enough, more do no harm."""
    for handler in logging.getLogger().handlers:
        if not any(isinstance(known, KafkaNoise) for known in handler.filters):
            handler.addFilter(KafkaNoise())
