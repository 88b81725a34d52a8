"""The door to google-re2: what cannot be compiled is refused before anyone can ask it."""

from __future__ import annotations

import pytest

from midwatch.rules.expressions import Expression, PatternError, compile_set


def test_a_set_for_which_the_memory_does_not_suffice_is_refused_and_not_handed_out() -> None:
    """Asking such a set would end the interpreter."""
    with pytest.raises(PatternError):
        compile_set([rf"{word}.{{200,900}}end" for word in ("one", "two", "three")], memory=1 << 14)


def test_bytes_and_characters_do_not_share_a_set() -> None:
    with pytest.raises(PatternError, match="cannot share a set"):
        compile_set(["rank", "é"])


@pytest.mark.parametrize("pattern", ["(", "a**", r"(?=x)", r"\1", "x{2000}", "(?:a{900}){900}", "\ud800"])
def test_what_re2_cannot_compile_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"\w+"):
        Expression(pattern)


@pytest.mark.parametrize("line", [b"", b"\x00" * 20_000, b"\xff" * 20_000, b"a" * 16_384 + b"end", b"\xc3"])
def test_any_line_is_searched(line: bytes) -> None:
    find = compile_set(["end$", r"a.*d", "^$"])
    alone = [i for i, pattern in enumerate(["end$", r"a.*d", "^$"]) if Expression(pattern).search(line)]
    assert sorted(find(line)) == alone
