"""One row of the table of bad input, and what it does to a topic's real handler.

A case is what arrives; a door is where. Each door feeds the bad record and then a good one through the
handler that the worker runs, and keeps what came out. `docs/bad-input.md` is written from the cases.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from midwatch.streams.records import DeadLetter
from midwatch.streams.records.codec import decode
from midwatch.streams.worker.fold import Send

JOB = "local:ada/llm"
OTHER = "local:bob/gpt"
AT_MS = 1_795_000_000_000
AT_S = AT_MS / 1000


@dataclass(frozen=True, slots=True)
class Case:
    """`said` stands in what a person reads; `kind` is the word of the dead letter and of the counter, ""
    where nothing is refused; `goes` says where the matter ends, for the page."""

    name: str
    said: str
    kind: str = "malformed"
    goes: str = "set aside in `dead`; the next record counts"
    value: object = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()

    def __str__(self) -> str:
        return self.name


@dataclass(slots=True)
class Outcome:
    """What came of one message: dead letters, everything else that was sent, and the counts of refusals."""

    letters: list[DeadLetter] = field(default_factory=list)
    sent: list[Send] = field(default_factory=list)
    counted: dict[str, int] = field(default_factory=dict)

    def sort(self, sends: tuple[Send, ...] | list[Send], dead: str) -> Outcome:
        for send in sends:
            if send.topic == dead:
                letter = decode(send.value or b"")
                assert isinstance(letter, DeadLetter)
                assert send.key == f"{letter.topic}/{letter.partition}/{letter.offset}".encode()
                self.letters.append(letter)
            else:
                self.sent.append(send)
        return self


def assert_refused(outcome: Outcome, case: Case) -> None:
    """One dead letter with its reason on one line, counted once under its word, and nothing else sent."""
    (letter,) = outcome.letters
    assert case.said in letter.reason, letter.reason
    assert letter.kind == case.kind
    assert letter.reason.isprintable()
    assert len(letter.reason) <= 2048
    assert outcome.counted == {case.kind: 1}


def ids(cases: tuple[Case, ...]) -> list[str]:
    """Names of the cases, for pytest."""
    return [case.name for case in cases]
