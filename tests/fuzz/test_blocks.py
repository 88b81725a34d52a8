"""Exactness of rules over tracebacks: whole, cut into chunks and into sections, they find what RE2 finds.

FUZZ_BLOCK_CASES sets how many pairs of a rule and a text are tried (default 8,000).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fuzz.blocks import try_blocks
from midwatch.rules import expressions
from midwatch.rules.matching import block_rules
from midwatch.streams.lines import blocks

CASES = int(os.environ.get("FUZZ_BLOCK_CASES", "8000"))
SEED = int(os.environ.get("FUZZ_SEED", "20260302"))
MUTANT_CASES = 8000


def test_rules_over_blocks_say_what_re2_says_of_each_block() -> None:
    tally = try_blocks(CASES, SEED)
    print(f"{tally.cases} cases, {tally.hits} hits, {dict(tally.kinds)}")
    assert tally.differences[:3] == []
    assert tally.cases >= CASES
    assert tally.hits > CASES / 10


def nothing_is_repeated(patch: pytest.MonkeyPatch) -> None:
    """A chunk that begins within a block does not open with it."""
    patch.setattr(blocks, "with_context", lambda section, text, _: (section, text))


def patience_begins_anew_with_a_chunk(patch: pytest.MonkeyPatch) -> None:
    """Lines of others are not repeated, so nobody can count them."""
    original = blocks.context

    def context(unfinished: blocks.Unfinished) -> Any:
        bare = tuple(
            replace(
                block,
                lines=tuple(
                    line
                    for index, line in enumerate(block.lines)
                    if index == 0 or line.text[len(block.speaker) :][:1].isspace()
                ),
            )
            for block in unfinished
        )
        return original(bare)

    patch.setattr(blocks, "context", context)


def the_latest_frames_are_dropped(patch: pytest.MonkeyPatch) -> None:
    """Of a long block the first lines are kept."""
    patch.setattr(blocks, "_window", lambda sizes: list(range(min(len(sizes), blocks.LONGEST_BLOCK))))


def the_speaker_is_part_of_the_block(patch: pytest.MonkeyPatch) -> None:
    """The launcher's prefix stays in the text."""
    original = blocks.finished

    def finished(text: bytes) -> Any:
        for block in original(text):
            line = text[block.start : block.end]
            said = block.text.rpartition(b"\n")[2]
            yield replace(block, text=block.text + b"\n" + line) if line != said else block

    patch.setattr(block_rules, "finished", finished)


def one_demand_of_all_rules(patch: pytest.MonkeyPatch) -> None:
    """Only the first rule's literals open the gate."""
    original = block_rules.words_of
    patch.setattr(block_rules, "words_of", lambda patterns: original(patterns[:1]))


def one_rule_a_block(patch: pytest.MonkeyPatch) -> None:
    """Only the first rule found in a block is told."""
    original = expressions.compile_set

    def compile_one(patterns: Sequence[str]) -> Any:
        find = original(patterns)
        return lambda text: list(find(text))[:1]

    patch.setattr(block_rules, "compile_set", compile_one)


MUTANTS: tuple[Callable[[pytest.MonkeyPatch], None], ...] = (
    nothing_is_repeated,
    patience_begins_anew_with_a_chunk,
    the_latest_frames_are_dropped,
    the_speaker_is_part_of_the_block,
    one_demand_of_all_rules,
    one_rule_a_block,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_defect_of_blocks_is_found(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert try_blocks(MUTANT_CASES, SEED, stop_at_first=True).differences, f"{mutant.__name__} was not caught"
