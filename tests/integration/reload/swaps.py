"""A run of swaps under load: what was sent, what came of it, and how long each swap took."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from integration.chain.installation import Installation, midwatch
from integration.reload.conftest import own_rules
from integration.reload.latency import put_in_force, seconds_until_taken
from integration.reload.numbered import Seen, Sender, own_file, write_bundle
from midwatch.agents.rulesets.reload.topic import RulesTopic, RulesWriter
from midwatch.streams.host.clock import now_ms
from midwatch.streams.records import InForce
from midwatch.streams.services.reachable import kafka_options
from processes import wait_for

SOON = 120.0
PEACE = float(os.environ.get("MIDWATCH_RELOAD_PEACE", "0"))
"""Seconds between two edits; a person needs some."""


def push(watch: Installation, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`midwatch rules push`, as a person calls it."""
    return subprocess.run(
        midwatch("rules", "push", *arguments),
        cwd=watch.directory,
        env=watch.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


def wait_until_folded(watch: Installation) -> None:
    """Detect has come to the end of `events`: what it says can be compared with what a recording says."""
    settings = watch.settings
    group, topic = f"{settings.topics.prefix}.detect", settings.topic_names.events
    admin = KafkaAdminClient(**kafka_options(settings))
    consumer = KafkaConsumer(**kafka_options(settings), group_id=None)
    try:
        partitions = [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]

        def folded() -> bool:
            ends = consumer.end_offsets(partitions)
            done = admin.list_group_offsets([group])[group]
            return all(not end or (tp in done and done[tp].offset >= end) for tp, end in ends.items())

        wait_for(folded, "detect has folded all that match said", 900)
    finally:
        consumer.close()
        admin.close()


def pushed(watch: Installation, *arguments: str) -> str:
    """The hash of the bundle that was put in force."""
    done = push(watch, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["bundle"])


@dataclass(frozen=True)
class Run:
    """Seconds from the record that puts a bundle in force: `taken`, until a worker matches by it; `stated`,
    until a line of every node that was sent since says so, with its way through Kafka and the load. The same
    two from the edit of a file of the first worker's: `edits_taken`, `edits_stated`."""

    bundles: dict[str, str]
    sent: int
    seen: Seen
    taken: list[float]
    stated: list[float]
    edits_taken: list[float]
    edits_stated: list[float]


def swap(watch: Installation, directory: Path, *, swaps: int, edits: int, lines: int) -> Run:
    """Push A and B, then go to and fro between them, then edit a file, until so many swaps, edits and lines
    were made."""
    seen, sender = Seen(watch.settings), Sender(watch.settings, enough=lines)
    threads = [threading.Thread(target=each.run, daemon=True) for each in (seen, sender)]
    bundles = {m: pushed(watch, str(write_bundle(directory / m, m))) for m in ("a", "b")}
    for thread in threads:
        thread.start()
    stated: list[float] = []
    writer = RulesWriter(watch.settings)
    try:
        wait_for(lambda: seen.everywhere(bundles["b"]), "the lines are matched by the last bundle", SOON)
        for number in range(swaps):
            wanted = bundles["ab"[number % 2]]
            writer.put_in_force(InForce(wanted, "push", "test@here", now_ms()))
            began = time.monotonic()
            wait_for(lambda: seen.everywhere(wanted), f"swap {number} is seen everywhere", SOON)  # noqa: B023  # waited for within the round
            stated.append(time.monotonic() - began)
        edited: list[_Edited] = []
        for number in range(edits):
            since = time.monotonic()
            wait_for(lambda: time.monotonic() > since + PEACE, "a person thinks", SOON)  # noqa: B023  # as above
            edited.append(_edit(watch, f"e{number}", seen))
        wait_for(lambda: sender.sent >= lines, f"{lines} lines are sent", 3600)
        sender.stop()
        threads[1].join(60)
        wait_for(lambda: seen.found >= sender.sent, "every line is counted", SOON)
    finally:
        sender.stop()
        seen.stop()
        writer.close()
        for thread in threads:
            thread.join(30)
    bundles |= {f"e{number}": edit.bundle for number, edit in enumerate(edited)}
    pushes = [change for change in put_in_force(watch.settings) if change[1] in (bundles["a"], bundles["b"])]
    logs = [watch.directory / f"{worker}.log" for worker in ("match", "second")]
    return Run(
        bundles,
        sender.sent,
        seen,
        taken=seconds_until_taken(pushes, logs),
        stated=stated,
        edits_taken=seconds_until_taken([(edit.at, edit.bundle) for edit in edited], logs),
        edits_stated=[edit.stated for edit in edited],
    )


@dataclass(frozen=True)
class _Edited:
    """`at`: before the file was written; `stated`: seconds from then on."""

    at: float
    bundle: str
    stated: float


def _edit(watch: Installation, marker: str, seen: Seen) -> _Edited:
    file, topic = own_rules(watch) / "own.yaml", RulesTopic(watch.settings)
    try:
        topic.read_to_end()
        before = topic.current
        at = time.time()
        draft = file.with_suffix(".part")
        draft.write_text(own_file(marker))
        draft.replace(file)
        wait_for(lambda: topic.read_on(100) and topic.current != before, f"{marker} is in force", SOON)
        assert topic.current is not None
        bundle = topic.current.in_force.bundle
    finally:
        topic.close()
    wait_for(lambda: seen.everywhere(bundle), f"{marker} is seen everywhere", SOON)
    return _Edited(at, bundle, time.time() - at)
