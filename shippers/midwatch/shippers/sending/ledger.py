"""The messages that are sent and not yet acknowledged, in order. Pure but for looks at the futures."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from midwatch.shippers.files.tail import FilePosition
from midwatch.shippers.sending.chunker import Ends
from midwatch.streams.records import Generation


class Future(Protocol):
    """The part of kafka-python's future that the ledger uses."""

    is_done: bool
    exception: BaseException | None


@dataclass(frozen=True, slots=True)
class _Sent:
    future: Future
    size: int
    ends: Ends
    at: float


class SendLedger:
    """Counts bytes in flight, and finds how far each file has arrived without a gap."""

    def __init__(self) -> None:
        self._sent: deque[_Sent] = deque()
        self.in_flight = 0

    def __len__(self) -> int:
        return len(self._sent)

    def add(self, future: Future, size: int, ends: Ends, at: float) -> None:
        """Adds a message that was just given to the producer."""
        self._sent.append(_Sent(future, size, ends, at))
        self.in_flight += size

    def arrived(self) -> dict[Generation, FilePosition]:
        """How far files have arrived since the last call, up to the first unacknowledged message.

        Raises:
            Exception: the producer gave up the first message; no later one counts as arrived.
        """
        out: dict[Generation, FilePosition] = {}
        while self._sent and self._sent[0].future.is_done:
            first = self._sent[0]
            if first.future.exception is not None:
                if out:
                    break  # this call returns what arrived, the next one raises
                raise first.future.exception
            self._sent.popleft()
            self.in_flight -= first.size
            out |= dict(first.ends)
        return out

    def oldest(self) -> float | None:
        """When the first unacknowledged message was sent; None without one."""
        return self._sent[0].at if self._sent else None

    def clear(self) -> None:
        """Forgets all messages. Call it when the producer is gone."""
        self._sent.clear()
        self.in_flight = 0
