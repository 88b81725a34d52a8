"""Sends the fact of a command's end to `events`, in a thread and over a connection of its own. Shell.

Lines that cannot be sent do not hold it up, and it does not hold up the lines.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from midwatch.shippers.messages import Report
from midwatch.shippers.sending.publish import Publisher
from midwatch.streams.records import SchedulerFact
from midwatch.streams.records.codec import Encoded, encode
from midwatch.streams.settings.schema import KafkaSettings

_LOOK_S = 0.02


class EndReport(threading.Thread):
    """Waits for the fact, then sends it until Kafka has it. `fact` gives None while the command runs.

    A broker that refuses the record, for example for want of a right, ends it: another try would not help.
    """

    def __init__(
        self, fact: Callable[[], SchedulerFact | None], kafka: KafkaSettings, topic: str, report: Report
    ) -> None:
        super().__init__(name="end-report", daemon=True)
        self._fact = fact
        self._publisher = Publisher(kafka, topic, report)
        self._report = report
        self.delivered = False

    def run(self) -> None:
        while (fact := self._fact()) is None:
            time.sleep(_LOOK_S)
        self._publisher.connect()
        while not self._publisher.ready:
            time.sleep(_LOOK_S)
        try:
            future = self._publisher.send(fact.job.encode(), Encoded(encode(fact)))
            while not future.is_done:
                time.sleep(_LOOK_S)
            error = future.exception
        except Exception as refused:  # whatever it is, the lines must still be sent
            error = refused
        if error is None:
            self.delivered = True
        else:
            self._report(f"Kafka refuses the record of the command's end: {error!r}")
        self._publisher.close()

    def arrived(self, seconds: float) -> bool:
        """Waits at most so many seconds; returns whether Kafka has the fact, or refused it."""
        self.join(max(0.0, seconds))
        return not self.is_alive()
