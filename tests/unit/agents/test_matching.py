"""A chunk becomes one record: hits in full up to three, the rest counted, progress as columns."""

from __future__ import annotations

from midwatch.agents.matching import FULL_HITS, match
from midwatch.rules.compiler import RuleSet, compile_rules
from midwatch.rules.model import Phase, Role, Rule
from midwatch.streams.lines import normalise
from midwatch.streams.records import Chunk, Generation, Hits, Origin, Section

ORIGIN = Origin("local:ada/llm", "n0", 1, "local:1:1", "boot", "s")
RULES = compile_rules(
    [
        Rule(name="oom", pattern="out of memory", error_type="oom", transient=False),
        Rule(
            name="iteration",
            pattern=r"iteration (?P<step>\d+)/(?P<total_steps>\d+) loss (?P<loss>\S+)",
            role=Role.PROGRESS,
            phase=Phase.TRAINING,
        ),
        Rule(name="evaluating", pattern="evaluating", role=Role.PROGRESS, phase=Phase.EVALUATION),
    ]
)


def _section(
    raw: bytes, path: str = "/l/a.log", *, offset: int = 0, number: int = 1, **more: object
) -> tuple[Section, bytes]:
    lines = normalise(raw)
    section = Section(
        path=path,
        generation=Generation(1, 2, path),
        size=len(lines.text),
        lines=lines.lines,
        anchors=lines.placed(offset, number),
        end=offset + len(raw),
        read_before=0.0,
        read_at=100.0,
        **more,  # type: ignore[arg-type]  # a test names only fields that exist
    )
    return section, lines.text


def _match(*parts: tuple[Section, bytes], rules: RuleSet = RULES) -> Hits | None:
    chunk = Chunk(ORIGIN, tuple(section for section, _ in parts), b"".join(text for _, text in parts))
    return match(chunk, rules, "hash", 7)


def test_a_hit_names_its_line_as_it_stands_in_the_file() -> None:
    raw = b"fine\r\n\x1b[31mout of memory\x1b[0m\nfine\n"
    found = _match(_section(raw, offset=1000, number=41))
    assert found is not None
    (hit,) = found.hits
    assert (hit.line.path, hit.line.number, hit.line.offset) == ("/l/a.log", 42, 1006)
    assert hit.line.text == "out of memory"
    assert (hit.role, hit.error_type, hit.transient) == ("cause", "oom", False)
    assert found.ends == {Generation(1, 2, "/l/a.log").key(): 1000 + len(raw)}


def test_a_storm_is_three_full_hits_and_a_count() -> None:
    found = _match(_section(b"out of memory\n" * 500))
    assert found is not None
    assert len(found.hits) == FULL_HITS
    (more,) = found.counts
    assert (more.count, more.first_number, more.last_number) == (497, 4, 500)


def test_progress_travels_as_columns() -> None:
    found = _match(_section(b"iteration 1/9 loss 2.5\nnoise\niteration 2/9 loss nan\nevaluating\n"))
    assert found is not None
    training, evaluation = found.progress
    assert (training.steps, training.losses, training.total) == ((1, 2), ("2.5", "nan"), 9)
    assert training.numbers == (1, 3)
    assert (evaluation.phase, evaluation.steps) == ("evaluation", (-1,))


def test_lines_of_several_files_keep_their_files_and_ranks() -> None:
    found = _match(
        _section(b"out of memory\n", "/l/0.log", rank=0), _section(b"x\nout of memory\n", "/l/1.log", rank=1)
    )
    assert found is not None
    assert [(h.line.path, h.line.number, h.line.rank) for h in found.hits] == [
        ("/l/0.log", 1, 0),
        ("/l/1.log", 2, 1),
    ]


def test_a_rank_that_the_text_claims_is_evidence_not_identity() -> None:
    found = _match(_section(b"[rank3]: out of memory\n"))
    assert found is not None
    assert (found.hits[0].line.rank, found.hits[0].line.claimed_rank) == (None, 3)


def test_invalid_bytes_are_kept_beside_the_text() -> None:
    found = _match(_section(b"out of memory \xff\n"))
    assert found is not None
    assert found.hits[0].line.text.endswith("\ufffd")
    assert found.hits[0].line.raw == b"out of memory \xff"


def test_a_repeated_context_line_is_not_this_chunks_hit() -> None:
    assert _match(_section(b"out of memory\nfine\n", context=1)) is None


def test_lines_that_mean_nothing_send_nothing() -> None:
    assert _match(_section(b"fine\n" * 100)) is None
