"""What was sent and is not acknowledged yet, in the order of sending. Pure but for asking the futures."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from midwatch.shippers.files.tail import FilePosition
from midwatch.shippers.sending.chunker import Ends
from midwatch.streams.records import Generation


class Future(Protocol):
    """kafka-python's, as far as it is used here."""

    is_done: bool
    exception: BaseException | None


@dataclass(frozen=True, slots=True)
class _Sent:
    future: Future
    size: int
    ends: Ends
    at: float


class SendLedger:
    """Counts bytes in flight, and says how far every file has arrived without a gap before it."""

    def __init__(self) -> None:
        self._sent: deque[_Sent] = deque()
        self.in_flight = 0

    def __len__(self) -> int:
        return len(self._sent)

    def add(self, future: Future, size: int, ends: Ends, at: float) -> None:
        """Something was given to the producer, behind all that was before."""
        self._sent.append(_Sent(future, size, ends, at))
        self.in_flight += size

    def arrived(self) -> dict[Generation, FilePosition]:
        """How far files have arrived since the last call: stops at the first that is not acknowledged.

        Raises:
            Exception: the producer gave that one up; nothing behind it counts as arrived.
        """
        out: dict[Generation, FilePosition] = {}
        while self._sent and self._sent[0].future.is_done:
            first = self._sent[0]
            if first.future.exception is not None:
                if out:
                    break  # this call tells what did arrive, the next one raises
                raise first.future.exception
            self._sent.popleft()
            self.in_flight -= first.size
            out |= dict(first.ends)
        return out

    def oldest(self) -> float | None:
        """When the first unacknowledged one was sent."""
        return self._sent[0].at if self._sent else None

    def clear(self) -> None:
        """The producer is gone: nothing more will arrive."""
        self._sent.clear()
        self.in_flight = 0
