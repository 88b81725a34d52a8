"""Every process of the watch is replaced, one after the other, while lines flow and a training dies."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.chain.installation import Installation, Job, installation, midwatch
from integration.chain.same_again import records_of
from integration.chain.training import PROCESSES, Training
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Hits
from processes import wait_for, written

NUMBERS = Path(__file__).with_name("numbers.py")
SOON = 150.0


@pytest.fixture
def watch(stack: Endpoints, tmp_path: Path) -> Iterator[Installation]:
    with installation(tmp_path / "watch", stack) as made:
        for name in PROCESSES:
            made.start(name)
        made.ready()
        yield made


def _reach(watch: Installation, name: str) -> Counter[int]:
    """How often each number stands in what match made of the lines; a repeated record counts once."""
    found = records_of(watch.settings, watch.settings.topic_names.events, name)
    columns = (column for record in found if isinstance(record, Hits) for column in record.progress)
    return Counter(step for column in columns for step in column.steps)


def test_a_rolling_restart_under_load_loses_no_line_and_restarts_once(
    watch: Installation, tmp_path: Path
) -> None:
    file = tmp_path / "numbers.log"
    watch.start("numbers", sys.executable, str(NUMBERS), str(file))
    watch.start("shipper", *midwatch("ship", "--job=numbers", "--start=beginning"), str(file))
    numbers = Job(watch, "numbers", tmp_path, ())
    training = Training(
        watch, tmp_path / "job", ("--iterations=60", "--iteration-ms=100", "--fault=nccl@50:1")
    )
    try:
        job = training.start()
        wait_for(lambda: job.step() > 5, "it is watched", SOON)
        wait_for(lambda: numbers.step() > 1000, "lines flow", SOON)
        for name in PROCESSES:
            watch.replace(name)
            watch.ready(name)
        wait_for(lambda: [d.action for d in job.decisions() if d.incident] == ["restart", "none"], "it", SOON)
        file.with_suffix(".stop").touch()
        wait_for(lambda: written(file.with_suffix(".count")), "the last line is written", SOON)
        last = int(file.with_suffix(".count").read_text())
        wait_for(lambda: numbers.step() == last, "the last line is read", SOON)
        story = numbers.story()
        assert story is not None
        assert _reach(watch, story.job) == Counter(range(1, last + 1))
        assert len(training.ledger().starts) == 2
        assert len(job.commands()) == 1
    finally:
        training.end()
