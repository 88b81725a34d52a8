"""A traceback that a real shipper cuts, on a real Kafka, is found by a rule over whole ones all the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from integration.shippers.shipping import Shipper, Topic, append
from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.model import BlockKind, Rule
from midwatch.streams.lines.normalise import places
from midwatch.streams.records import Chunk
from processes import wait_for

pytestmark = pytest.mark.integration

MakeShipper = Callable[..., Shipper]
RULES = compile_rules(
    [
        Rule(
            name="fetching",
            pattern=r"(?s)\ATraceback.*loader\.py.*\nKeyError: 'r(?P<rank>\d)'\z",
            block=BlockKind.TRACEBACK,
            error_type="data",
        )
    ]
)


def traceback(rank: int) -> list[str]:
    frames = [f'  File "/toy/loader.py", line {line}, in r{rank}' for line in range(3)]
    return [
        f"[rank{rank}]: {line}"
        for line in ("Traceback (most recent call last):", *frames, f"KeyError: 'r{rank}'")
    ]


def ranks_found(topic: Topic) -> list[str]:
    """What a worker's rules find in the chunks that came, one by one."""
    found: list[str] = []
    for chunk in (record for _, record in topic.records if isinstance(record, Chunk)):
        start = 0
        for section in chunk.sections:
            text = chunk.text[start : start + section.size]
            start += section.size
            hits = RULES.match_blocks(text)
            for hit, _ in zip(hits, places(section, text, (h.start for h in hits)), strict=True):
                if hit.line_number >= section.context:
                    found.append(hit.captures()["rank"])
    return found


@pytest.mark.parametrize("killed", [False, True])
def test_eight_ranks_cut_in_every_frame_are_all_found(
    tmp_path: Path, topic: Topic, shipper: MakeShipper, killed: bool
) -> None:
    log = tmp_path / "train.log"
    running = shipper(log).start()
    for number, group in enumerate(zip(*(traceback(rank) for rank in range(8)), strict=True)):
        if killed and number:
            sent = str(log.stat().st_size)
            wait_for(lambda: any(sent in p.read_text() for p in running.checkpoints()), "the checkpoint")  # noqa: B023  # asked within this turn
            running.kill()
            running.start()
        append(log, group)
        topic.wait_for_lines(set(group))
    assert running.stop() == 0
    topic.read()
    sections = [s for _, record in topic.records if isinstance(record, Chunk) for s in record.sections]
    assert sum(section.context > 0 for section in sections) >= (2 if killed else 4), "nothing was cut"
    assert sorted(set(ranks_found(topic))) == [str(rank) for rank in range(8)]
    assert killed or len(ranks_found(topic)) == 8
