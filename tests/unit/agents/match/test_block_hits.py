"""A rule over tracebacks finds the same, wherever the shipper's chunks, sections or a replay's cuts fall."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from house.cases import cases
from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.match.chunk_hits import match
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.replay.job_replay import replay
from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.replayed import Replayed
from midwatch.agents.rulesets.bundles import CompiledBundle
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.matching.hits import Match
from midwatch.rules.model import BlockKind, Role, Rule
from midwatch.shippers.files.tail import FilePosition
from midwatch.shippers.files.tail import ReadBlock as Read
from midwatch.shippers.sending.chunker import Chunker
from midwatch.streams.lines.normalise import places
from midwatch.streams.records import Chunk, Generation, Hits, Origin
from midwatch.streams.records.codec import decode_log, encode_log
from unit.agents.detect.incident.scene import JOB, Scene

ORIGIN = Origin(JOB, "n0", 1, "local:100:1", "boot", "s")
RULES = compile_rules(
    [
        Rule(
            name="fetching",
            pattern=r"(?s)loader\.py.*\n(?P<what>KeyError): '(?P<key>\w+)'",
            block=BlockKind.TRACEBACK,
            error_type="data",
            transient=False,
        ),
        Rule(
            name="from_the_top",
            pattern=r"\ATraceback .*\n  File",
            block=BlockKind.TRACEBACK,
            role=Role.CONTEXT,
        ),
        Rule(name="any_error", pattern=r"^(?:\[\w+\]: )?\w*Error\b", error_type="exception", fallback=True),
    ]
)
Found = Counter[tuple[str, int, str, tuple[tuple[str, str], ...]]]


def traceback(
    rank: int, *, frames: int = 3, where: str = "loader", prefix: str = "[rank%d]: "
) -> list[bytes]:
    who = (prefix % rank if prefix else "").encode()
    lines = [b"Traceback (most recent call last):"]
    for number in range(frames):
        lines += [b'  File "/toy/%s.py", line %d, in step' % (where.encode(), number), b"    go(%d)" % rank]
    return [who + line + b"\n" for line in [*lines, b"KeyError: 'r%d'" % rank]]


def interleaved(blocks: Sequence[list[bytes]], seed: int) -> list[bytes]:
    """One stream out of many, each in its own order; other lines in between."""
    chance = random.Random(seed)
    left = [list(block) for block in blocks]
    lines: list[bytes] = []
    while any(left):
        one = chance.choice([block for block in left if block])
        lines.append(one.pop(0))
        if chance.random() < 0.1:
            lines.append(b"[rank9]: step %d of 90\n" % len(lines))
    return lines


def reads(groups: Iterable[bytes], generation: Generation) -> Iterator[Read]:
    at = FilePosition()
    for raw in groups:
        end = FilePosition(at.offset + len(raw), at.number + raw.count(b"\n"))
        yield Read(f"/l/{generation.inode}.log", generation, at, end, raw, 0.0, 1.0)
        at = end


def chunks(*polls: Sequence[Read], limit: int = 256 * 1024) -> list[Chunk]:
    """What a shipper sends, poll by poll, as it comes out of the topic."""
    cutter = Chunker(ORIGIN, limit)
    sent = [encode_log(parcel.chunk) for poll in polls for parcel in cutter.parcels(poll)]
    return [
        chunk for message in sent if isinstance(chunk := decode_log(message.value, message.headers), Chunk)
    ]


def found_in(chunks: Iterable[Chunk], rules: RuleSet = RULES) -> Found:
    """Every hit by its place, without the limit of three a rank."""
    hits: Found = Counter()
    for chunk in chunks:
        start = 0
        for section in chunk.sections:
            text = chunk.text[start : start + section.size]
            start += section.size
            both: list[Match] = [*rules.match_blocks(text), *rules.match_chunk(text)]
            both.sort(key=lambda hit: hit.start)
            for hit, place in zip(both, places(section, text, (h.start for h in both)), strict=True):
                if hit.line_number >= section.context:
                    said = tuple(sorted(hit.captures().items()))
                    hits[hit.rule.name, place.offset, section.path, said] += 1
    return hits


GENERATION = Generation(1, 0, "a")
EIGHT = interleaved([traceback(rank) for rank in range(8)], seed=1)


def test_eight_interleaved_ranks_cut_at_every_line_give_the_same_hits() -> None:
    whole = found_in(chunks(list(reads([b"".join(EIGHT)], GENERATION))))
    assert sum(count for (name, *_), count in whole.items() if name == "fetching") == 8
    assert sum(count for (name, *_), count in whole.items() if name == "any_error") == 8
    for split in range(1, len(EIGHT)):
        first, second = b"".join(EIGHT[:split]), b"".join(EIGHT[split:])
        one, two = reads([first, second], GENERATION)
        assert found_in(chunks([one], [two])) == whole, split
        assert found_in(chunks([one, two])) == whole, f"{split}, two sections of one chunk"


def test_a_chunk_for_each_line_gives_the_same_hits() -> None:
    whole = found_in(chunks(list(reads([b"".join(EIGHT)], GENERATION))))
    assert found_in(chunks(*([read] for read in reads(EIGHT, GENERATION)))) == whole


def test_files_of_ranks_cut_at_every_line_between_each_other_give_the_same_hits() -> None:
    """Eight files in one chunk after the other, a few lines of each at a time."""
    files = [traceback(rank, prefix="") for rank in range(8)]
    generations = [Generation(1, rank, f"r{rank}") for rank in range(8)]
    whole = found_in(
        chunks([r for lines, g in zip(files, generations, strict=True) for r in reads([b"".join(lines)], g)])
    )
    assert sum(whole.values()) == 24
    for split in range(1, len(files[0])):
        cut = [
            list(reads([b"".join(lines[:split]), b"".join(lines[split:])], generation))
            for lines, generation in zip(files, generations, strict=True)
        ]
        assert found_in(chunks([first for first, _ in cut], [second for _, second in cut])) == whole, split


LINES = st.sampled_from(
    [
        b"Traceback (most recent call last):",
        b"Original Traceback (most recent call last):",
        b'  File "/toy/loader.py", line 1, in fetch',
        b"    go()",
        b"",
        b"step 7 of 90",
        b"KeyError: 'a'",
        b"ValueError",
        b"said: that",
        b"\xff damaged",
    ]
)
SAYINGS = st.lists(
    st.tuples(st.sampled_from([b"", b"[rank1]: ", b"3: "]), LINES, st.integers(1, 20)), max_size=40
)


@settings(max_examples=int(os.environ.get("BLOCK_CASES", cases(150))))
@given(SAYINGS, st.lists(st.integers(1, 400), max_size=12))
def test_any_lines_cut_anywhere_give_the_same_hits(
    said: list[tuple[bytes, bytes, int]], cuts: list[int]
) -> None:
    lines = [prefix + line + b"\n" for prefix, line, times in said for _ in range(times)]
    groups: list[bytes] = []
    at = 0
    for cut in [*cuts, len(lines)]:
        groups.append(b"".join(lines[at : at + cut]))
        at += cut
    whole = found_in(chunks(list(reads([b"".join(lines)], GENERATION))))
    assert found_in(chunks(*([read] for read in reads([g for g in groups if g], GENERATION)))) == whole


def test_a_block_longer_than_what_is_repeated_is_the_same_block() -> None:
    lines = traceback(1, frames=90)
    whole = found_in(chunks(list(reads([b"".join(lines)], GENERATION))))
    assert sum(whole.values()) == 2  # its head is always there; and the plain line
    for split in range(1, len(lines)):
        cut = reads([b"".join(lines[:split]), b"".join(lines[split:])], GENERATION)
        assert found_in(chunks(*([read] for read in cut))) == whole, split


def test_of_more_than_a_chunk_may_repeat_the_oldest_rank_is_lost_and_no_other() -> None:
    wide = [
        [*traceback(rank)[:-1], *[b"[rank%d]:   %s\n" % (rank, b"x" * 1000)] * 12, traceback(rank)[-1]]
        for rank in range(8)
    ]
    heads = [line for block in wide for line in block[:-1]]
    first, second = reads([b"".join(heads), b"".join(block[-1] for block in wide)], GENERATION)
    hits = found_in(chunks([first], [second]))
    told = sorted(dict(said)["key"] for name, _, _, said in hits if name == "fetching")
    assert told == ["r3", "r4", "r5", "r6", "r7"]


def folded(cut: Iterable[Chunk]) -> Scene:
    job = Scene()
    job.spec()
    job.now += 1
    for chunk in cut:
        record = match(chunk, RULES, "hash", 0)
        if record is not None:
            job.say(record)
    job.ended()
    job.last_words()
    return job


@pytest.mark.capability("S000-03")
def test_the_verdict_is_the_same_though_the_chunks_end_within_the_traceback() -> None:
    lines = traceback(3)
    for split in range(1, len(lines)):
        cut = reads([b"".join(lines[:split]), b"".join(lines[split:])], GENERATION)
        (incident,) = folded(chunks(*([read] for read in cut))).settled()
        verdict = incident.verdict
        assert (verdict.rule, verdict.error_type, verdict.root_line_number) == (
            "fetching",
            "data",
            len(lines),
        )
        assert incident.evidence[0].captures == {"what": "KeyError", "key": "r3"}


def test_a_rule_over_blocks_knows_more_than_a_fallback_on_its_last_line() -> None:
    (chunk,) = chunks(list(reads([b"".join(traceback(0))], GENERATION)))
    record = match(chunk, RULES, "hash", 0)
    assert isinstance(record, Hits)
    assert [hit.rule for hit in record.hits if hit.role == "cause"] == ["fetching"]


def replayed(content: bytes) -> Replayed:
    policy = load_policy("verdict")
    book = Rulebook({"verdict": policy}, lambda command: command)
    watched = CompiledBundle(RULES, "hash")
    return replay("replay:file/x", [LogFile("x.log", content, 1e9)], watched, book, WatchLimits())


def test_a_replay_finds_what_the_stream_finds_wherever_its_256_kib_end() -> None:
    lines = b"".join(traceback(0))
    for behind in range(len(lines) + 1):
        content = b"." * (256 * 1024 - behind - 1) + b"\n" + lines
        verdict = replayed(content).verdict
        assert (verdict.rule, verdict.root_line_number) == ("fetching", 9), behind
    at_half = b"." * (256 * 1024 - len(lines) // 2) + b"\n" + lines
    halves = reads([at_half[: 256 * 1024], at_half[256 * 1024 :]], GENERATION)
    assert at_half[: 256 * 1024].count(b"\n") > 1
    streamed = folded(chunks(*([read] for read in halves))).settled()[0].verdict
    assert streamed.root_line_number == replayed(at_half).verdict.root_line_number == 9


@pytest.mark.parametrize("others", [(16,), (17,), (16, 16), (9, 17)])
def test_patience_with_other_lines_is_the_same_across_a_cut(others: tuple[int, ...]) -> None:
    header, *frames, last = traceback(0, prefix="")
    lines = [header]
    for count in others:
        lines += [*frames, *[b"step 7 of 90\n"] * count]
    lines.append(last)
    whole = found_in(chunks(list(reads([b"".join(lines)], GENERATION))))
    assert bool([name for name, *_ in whole if name == "fetching"]) is (max(others) <= 16)
    for split in range(1, len(lines)):
        cut = reads([b"".join(lines[:split]), b"".join(lines[split:])], GENERATION)
        assert found_in(chunks(*([read] for read in cut))) == whole, split
