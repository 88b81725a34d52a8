"""The line above a traceback may say that its program gets over the exception below, or nothing of it."""

from __future__ import annotations

import pytest

from midwatch.agents.match.said_above import gets_over_it

RAISED = b"toys.PaintError: 503, message='no paint'"
NO_LIBRARY = b"Could not load bitsandbytes native library: libtoys.so: cannot open"


@pytest.mark.parametrize(
    ("lead", "words", "over"),
    [
        (b"paint failed, retrying", RAISED, True),
        (b"ERROR PaintError('no paint'), retrying.", RAISED, True),
        (b"ERROR RuntimeError('the box is shut'), retrying.", RAISED, False),
        (b"7 images of the toys will be skipped", RAISED, False),
        (b"paint failed", RAISED, False),
        (NO_LIBRARY, b"OSError: libtoys.so: cannot open", True),
        (b"[2026-03-02 11:53:01,118] [ERROR] [toys.cextension:7] " + NO_LIBRARY, b"OSError: odd", True),
        (b"RuntimeError: " + NO_LIBRARY, b"ToyError: odd", False),
    ],
)
def test_a_record_on_one_exception_says_nothing_of_another(lead: bytes, words: bytes, over: bool) -> None:
    assert gets_over_it(lead, words) is over
