"""On the real chain, with real shippers: when the last words of an attempt come late, or never."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.chain.installation import Installation, Job, installation, midwatch
from integration.chain.same_again import records_of
from integration.chain.training import PROCESSES, Training
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Decision, Incident, Verdict
from processes import wait_for

SOON = 150.0
PAUSE_S = 60
NODES = ("n0", "n1", "n2")
TIMEOUT = (
    "[rank1]:[E1120 03:04:05.678901 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=414, OpType=ALLREDUCE, NumelIn=16, NumelOut=16, Timeout(ms)=9000) ran for 9003 "
    "milliseconds before timing out."
)
OUT_OF_MEMORY = (
    "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 2 has a total "
    "capacity of 79.10 GiB of which 1.06 GiB is free."
)


@pytest.fixture(scope="module")
def watch(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("watch"), stack) as made:
        for name in PROCESSES:
            made.start(name)
        made.ready()
        yield made


@pytest.fixture(autouse=True)
def nothing_stays(watch: Installation) -> Iterator[None]:
    yield
    watch.finish_jobs()


def _training(watch: Installation, directory: Path) -> Job:
    job = watch.run(directory, "--limit=training=600s", nodes=NODES)
    job.ship()
    wait_for(lambda: job.step() > 10, "progress is seen", SOON)
    wait_for(lambda: (s := job.story()) is not None and len(s.nodes) == 4, "every node is heard", SOON)
    return job


def _whole_name(job: Job) -> str:
    story = job.story()
    assert story is not None
    return story.job


def _settled(job: Job) -> list[Incident]:
    """Every revision, from the topic itself."""
    watch = job.installation
    told = records_of(watch.settings, watch.settings.topic_names.incidents, _whole_name(job))
    return [record for record in told if isinstance(record, Incident) and record.state == "settled"]


def _decided(job: Job) -> list[Decision]:
    return [decision for decision in job.decisions() if decision.incident]


def _why(job: Job) -> str:
    told = subprocess.run(
        midwatch("why", job.name),
        env=job.installation.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return " ".join(told.stdout.split())


def _said(verdict: Verdict) -> dict[str, object]:
    """All of a verdict that does not tell one job from another."""
    fields = {name: getattr(verdict, name) for name in Verdict.__slots__}
    return fields | {
        "root_file": Path(verdict.root_file).name,
        "root_line": re.sub(r"E\d+ [\d:.]+|ran for \d+", "", verdict.root_line),
        "quantities": sorted(verdict.quantities),
    }


def test_a_match_that_is_a_minute_behind_changes_no_verdict_and_makes_no_hang(
    watch: Installation, tmp_path: Path
) -> None:
    about = ("--iterations=60", "--iteration-ms=60", "--save-every=10", "--fault=nccl@50:1")
    prompt, late = (Training(watch, tmp_path / name, about) for name in ("prompt", "late"))
    try:
        healthy = watch.run(tmp_path / "healthy", "--limit=training=6s", "--limit=startup=60s", nodes=NODES)
        healthy.ship()
        told = prompt.start()
        wait_for(lambda: [d.action for d in _decided(told)] == ["restart", "none"], "the rescue", SOON)
        wait_for(lambda: healthy.step() > 10, "the healthy one is watched", SOON)
        behind = late.start()
        wait_for(lambda: behind.step() > 5, "it trains", SOON)
        watch.processes["match"].send_signal(signal.SIGSTOP)
        until = time.monotonic() + PAUSE_S
        wait_for(lambda: bool(late.ledger().faults), "it fails while nobody reads its lines", SOON)
        wait_for(lambda: time.monotonic() > until, "the pause", PAUSE_S + 10)
        assert _settled(behind) == [], "its lines are waited for"
        watch.processes["match"].send_signal(signal.SIGCONT)
        wait_for(lambda: [d.action for d in _decided(behind)] == ["restart", "none"], "the rescue", SOON)

        assert _said(_settled(behind)[0].verdict) == _said(_settled(told)[0].verdict)
        assert _settled(behind)[0].verdict.complete
        assert [len(training.ledger().starts) for training in (prompt, late)] == [2, 2]
        step = healthy.step()
        wait_for(lambda: healthy.step() > step + 10, "the lines of the pause are worked off", SOON)
        assert (healthy.commands(), healthy.starts()) == ([], 1)
    finally:
        prompt.end()
        late.end()


def test_a_node_that_answers_after_it_was_given_up_raises_the_revision_and_starts_nothing(
    watch: Installation, tmp_path: Path
) -> None:
    job = _training(watch, tmp_path / "job")
    job.shipper("n2").send_signal(signal.SIGSTOP)
    wait_for(lambda: bool(job.findings("node_silent:n2")), "the node is missed", SOON)
    decide = watch.processes["decide"]
    decide.send_signal(signal.SIGSTOP)  # so that both revisions stand before the first is decided
    job.crash(("n2", OUT_OF_MEMORY), ("n1", TIMEOUT))
    wait_for(lambda: len(_settled(job)) == 1, "it is settled without the node", SOON)
    (first,) = _settled(job)
    assert (first.revision, first.verdict.error_type, first.verdict.transient) == (1, "nccl_timeout", True)
    assert (first.verdict.given_up, first.verdict.complete) == (("n2",), False)
    assert "incomplete (no word from n2)" in _why(job)

    job.shipper("n2").send_signal(signal.SIGCONT)
    wait_for(lambda: _settled(job)[-1].verdict.error_type == "oom", "the node's own word", SOON)
    last = _settled(job)[-1]
    assert last.revision > first.revision
    assert (last.id, last.verdict.node, last.verdict.transient) == (first.id, "n2", False)
    decide.send_signal(signal.SIGCONT)
    wait_for(lambda: len(_decided(job)) >= 2, "both are decided", SOON)
    wait_for(lambda: job.starts() == 2, "the one restart", SOON)
    assert [d.action for d in _decided(job)] == ["restart", *["none"] * (last.revision - 1)]
    assert "already out" in _decided(job)[-1].reason
    assert len(job.commands()) == 1


def test_a_node_that_answers_after_the_restart_changes_nothing_any_more(
    watch: Installation, tmp_path: Path
) -> None:
    job = _training(watch, tmp_path / "job")
    job.shipper("n2").send_signal(signal.SIGSTOP)
    wait_for(lambda: bool(job.findings("node_silent:n2")), "the node is missed", SOON)
    job.crash(("n2", OUT_OF_MEMORY), ("n1", TIMEOUT))
    wait_for(lambda: job.starts() == 2, "the restart", SOON)
    job.shipper("n2").send_signal(signal.SIGCONT)
    wait_for(lambda: _late_lines_were_read(job), "the late lines are judged", SOON)
    assert (job.starts(), len(job.commands())) == (2, 1)
    assert [d.action for d in _decided(job)] == ["restart"]


def _late_lines_were_read(job: Job) -> bool:
    watch = job.installation
    told = records_of(watch.settings, watch.settings.topic_names.events, _whole_name(job))
    return any("CUDA out of memory" in str(record) for record in told)
