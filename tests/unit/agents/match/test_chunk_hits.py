"""A chunk becomes one record: hits in full up to three, the rest counted, progress as columns."""

from __future__ import annotations

from midwatch.agents.match.chunk_hits import FULL_HITS, match
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.model import Phase, Role, Rule
from midwatch.streams.lines.normalise import normalise
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


def test_a_storm_is_three_full_hits_its_last_one_and_a_count() -> None:
    found = _match(_section(b"out of memory\n" * 500))
    assert found is not None
    assert [hit.line.number for hit in found.hits] == [*range(1, FULL_HITS + 1), 500]
    (more,) = found.counts
    assert (more.count, more.first_number, more.last_number) == (496, 4, 500)


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


def test_words_cited_in_backticks_are_context() -> None:
    found = _match(_section(b"you will see `toy: out of memory (2 GiB)`; take a smaller batch\n"))
    assert found is not None
    assert found.hits[0].role == "context"
    found = _match(_section(b"Error: out of memory while `toy` was built for `toy2`\n"))
    assert found is not None
    assert found.hits[0].role == "cause"


def test_a_tracker_that_stumbles_does_not_end_the_run_but_what_it_met_may() -> None:
    rules = compile_rules(
        [
            Rule(name="any", pattern=r"\wError: ", error_type="exception", fallback=True),
            Rule(name="full", pattern="No space left", error_type="storage"),
        ]
    )
    thread = b'  File "/usr/lib/python3.10/threading.py", line 9, in _bootstrap_inner\n    self.run()\n'
    own = b'  File "/opt/site-packages/wandb/sdk/internal/toy.py", line 2, in _send\n    toy(a)\n'
    head = b"Traceback (most recent call last):\n" + thread + own
    roles = []
    for last in (b"ConnectionError: gone\n", b"OSError: [Errno 28] No space left on device\n"):
        found = _match(_section(head + last), rules=rules)
        assert found is not None
        roles.append([hit.role for hit in found.hits])
    assert roles == [["context"], ["cause"]]


def test_how_a_command_ended_that_a_shell_asked_for_its_output_is_context() -> None:
    rules = compile_rules(
        [
            Rule(
                name="task",
                pattern="Exited with exit code",
                error_type="exception",
                role=Role.CONSEQUENCE,
                fallback=True,
            )
        ]
    )
    last = b"srun: error: n4: task 0: Exited with exit code 1\n"
    roles = []
    for above in (b"++ srun facts.sh\n", b"+ srun train.sh\n"):
        found = _match(_section(above + last), rules=rules)
        assert found is not None
        roles.append(found.hits[0].role)
    assert roles == ["context", "consequence"]


def test_what_made_a_loop_leave_a_batch_out_is_context_unless_the_loop_breaks_over_it() -> None:
    full = b"toy.cu line=3 error=2 : out of memory\n"
    left = b"| WARNING: ran short on GPU #1, skipping batch\n"
    broke = b"Traceback (most recent call last):\n"
    smaller = b"2026-03-02 11:00:00 WARNING toys: retrying with batch size 8\n"
    again = b"WARNING: too large a batch, retrying epoch 7 with 8\n" + broke
    without = b"\nERROR toys: push failed, carrying on without it\n"
    went_on = b"iteration 8/9 loss 2.0\n"
    roles = []
    for below in (left, left + went_on, smaller, again, without, left + broke, went_on):
        found = _match(_section(full + below))
        assert found is not None
        roles.append(found.hits[0].role)
    assert roles == ["context"] * 5 + ["cause"] * 2
