"""A converted configuration decides as the one that it was made of, whatever happens to a job."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from house.cases import cases
from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.match.chunk_hits import match
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.policies.oellm import RetryCounting
from midwatch.agents.rulesets.bundles import CompiledBundle, watched_rules
from midwatch.agents.rulesets.conversion import convert
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.rules.loader import load_bundle, load_config, shipped_files
from midwatch.rules.oellm.reading import read_config
from midwatch.streams.lines.normalise import normalise
from midwatch.streams.records import Chunk, Command, Decision, Generation, Section
from unit.agents.detect.incident.scene import START_S, Scene
from unit.rules.oellm.fixture_files import FIXTURES

SEQUENCES = 240  # of each case, in a full run; 5 cases

LINES = (
    b"step 7 of 90, loss 2.25",
    b"step 12 loss 3.5",
    b"out of memory; wanted 12 MiB",
    b"CUDA out of memory",
    b"ring [3] broke? after 12 s",
    b"wall clock exceeded",
    b"nothing moves since 12",
    b"training ended well",
    b"test loss at the end: 2.25",
    b"checkpoint of step 40 is in /c/40",
    b"NCCL collective timeout",
    b"NCCL WARN something",
    b"ValueError: bad",
    b"rank 3 is stuck",
    b"CANCELLED DUE TO TIME LIMIT",
    b"the run is over",
    b"link 12 is down",
    b"lost node n7",
    b"No space left on device",
    b"[training is done]",
    b"srun: Exited with exit code 1",
    b"fabric of n3: connection failure",
    b"tokens per second 12",
    b"nobody knows this line",
)
ENDS = (
    ("FAILED", "crash", "slurm_failure"),
    ("CANCELLED", "crash", "cancelled"),
    ("TIMEOUT", "timeout", "timeout"),
    ("COMPLETED", "success", ""),
    ("OUT_OF_MEMORY", "crash", "oom"),
    ("NODE_FAIL", "crash", "slurm_failure"),
    ("PREEMPTED", "crash", "preemption"),
)
CASES = [
    ("gen0/experiments/run.yaml", RetryCounting.DOCUMENTED),
    ("gen1/experiments/run.yaml", RetryCounting.DOCUMENTED),
    ("gen1/experiments/run.yaml", RetryCounting.COMPAT),
    ("gen2/monitoring/plain.yaml", RetryCounting.DOCUMENTED),
    ("gen3/experiments/run.yaml", RetryCounting.DOCUMENTED),
]


@dataclass(frozen=True)
class Judges:
    """Rules, policy and limits of one pair of files."""

    watched: CompiledBundle
    book: Rulebook
    limits: WatchLimits
    policy: str


def judges(rules: str, policy: str, counting: RetryCounting) -> Judges:
    loaded = load_policy(policy, counting)
    limits = WatchLimits(**{str(phase): seconds for phase, seconds in load_bundle(rules).silence.items()})
    book = Rulebook({loaded.name: loaded}, lambda command: command, loaded.name, acting=True)
    return Judges(watched_rules((rules,), scan=False), book, limits, loaded.name)


def played(seed: int, by: Judges) -> tuple[list[Decision], list[Command]]:
    """A job's life out of a seed: up to four attempts of lines, silence and ends, acts carried out."""
    chance = random.Random(seed)
    job = Scene(limits=by.limits, policy="verdict", interval=chance.choice([5.0, 60.0]))
    job.policy, job.book = by.policy, by.book
    if chance.random() < 0.9:
        job.spec(armed=chance.random() < 0.9)
    offset = 0
    for attempt in range(1, 5):
        for piece in pieces(chance):
            job.now += chance.choice([1, 20])
            if piece is None:
                job.beats("n0", seconds=by.limits.training * chance.choice([0.3, 1.3]))
                continue
            offset = say(job, by, piece, offset)
        if chance.random() < 0.8:
            state, mode, error_type = chance.choice(ENDS)
            person = "ada" if state == "CANCELLED" and chance.random() < 0.5 else ""
            said = {
                "cluster": chance.choice(["slurm", "local"]),
                "old": chance.choice(["RUNNING", "PENDING"]),
            }
            end(job, state, mode=mode, error_type=error_type, by_person=person, **said)
        job.last_words()
        job.now += 200
        job.beat("n0")
        if not job.commands or job.commands[-1].attempt != attempt:
            break
        if chance.random() < 0.9:
            job.accepted(job.commands[-1])
            job.done(job.commands[-1], f"local:{attempt}:7")
        job.incarnation = f"local:{attempt}:7"
    return job.decisions, job.commands


def end(job: Scene, state: str, *, old: str, cluster: str, **said: str) -> None:
    from midwatch.streams.records import SchedulerFact

    fields: dict[str, object] = dict(said)
    job.say(
        SchedulerFact(
            "local:ada/llm",
            job.incarnation,
            "1",
            old,
            state,
            True,
            cluster=cluster,
            **fields,  # type: ignore[arg-type]  # a test names only fields that exist
        )
    )


def pieces(chance: random.Random) -> Iterator[list[bytes] | None]:
    for _ in range(chance.randint(0, 4)):
        yield None if chance.random() < 0.2 else chance.choices(LINES, k=chance.randint(1, 3))


def say(job: Scene, by: Judges, lines: list[bytes], offset: int) -> int:
    raw = b"\n".join(lines) + b"\n"
    text = normalise(raw)
    section = Section(
        path="/l/a",
        generation=Generation(1, 1, "/l/a"),
        size=len(text.text),
        lines=text.lines,
        anchors=text.placed(offset, 1),
        end=offset + len(raw),
        read_before=START_S,
        read_at=START_S + job.now,
    )
    chunk = Chunk(job.origin("n0"), (section,), text.text)
    found = match(chunk, by.watched.rules, by.watched.hash, 0, any_line=by.watched.any_line)
    if found is not None:
        job.say(found)
    return offset + len(raw)


def pair(root: str, counting: RetryCounting, folder: Path) -> tuple[Judges, Judges]:
    """What is decided by the file itself, and by the two files that it is converted to."""
    path = str(FIXTURES / root)
    made = convert(load_config(path), shipped_files(), counting)
    rules, policy = folder / "converted.rules.yaml", folder / "converted.policy.yaml"
    rules.write_text(made.rules)
    policy.write_text(made.policy)
    original = judges(path, path, counting)
    return original, judges(str(rules), str(policy), RetryCounting.DOCUMENTED)


@pytest.mark.parametrize(("root", "counting"), CASES)
def test_a_converted_pair_of_files_takes_the_same_decisions(
    root: str, counting: RetryCounting, tmp_path: Path
) -> None:
    original, converted = pair(root, counting, tmp_path)
    assert original.watched.hash == converted.watched.hash
    assert original.watched.any_line is converted.watched.any_line
    assert original.limits == converted.limits
    acts: dict[str, int] = {}
    for seed in range(cases(SEQUENCES)):
        theirs, ours = played(seed, original), played(seed, converted)
        assert ours == theirs, seed
        for decision in theirs[0]:
            acts[decision.action] = acts.get(decision.action, 0) + 1
    assert len(acts) >= 3, acts  # else the sequences would show nothing
    assert original.book.policies.keys() == converted.book.policies.keys()


def test_for_a_preset_of_restarts_that_midwatch_brings_no_policy_is_written() -> None:
    text = b"defaults:\n  - /monitoring: megatron_production\n  - /restart: megatron_transient\n"
    converted = convert(read_config("basic.yaml", {"basic.yaml": text}), shipped_files())
    assert "megatron_production" in converted.rules
    assert converted.policy == ""


def test_a_lost_guard_would_be_seen(tmp_path: Path) -> None:
    """The sequences tell a policy from another that lacks one of its conditions."""
    original, _ = pair("gen3/experiments/run.yaml", RetryCounting.DOCUMENTED, tmp_path)
    text = (tmp_path / "converted.policy.yaml").read_text()
    assert "attempts_below: 3" in text
    (tmp_path / "broken.yaml").write_text(text.replace("attempts_below: 3", "attempts_below: 4"))
    broken = judges(
        str(FIXTURES / "gen3/experiments/run.yaml"), str(tmp_path / "broken.yaml"), RetryCounting.DOCUMENTED
    )
    assert any(played(seed, original) != played(seed, broken) for seed in range(SEQUENCES))
