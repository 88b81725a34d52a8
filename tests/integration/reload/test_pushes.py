"""What a person sees who pushes or edits rules: in force everywhere, or refused everywhere and told."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.chain.installation import Installation, Job, installation, midwatch
from integration.reload.conftest import second_match
from integration.reload.swaps import SOON, push, pushed
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.agents.rulesets.reload.topic import CurrentBundle, RulesTopic
from midwatch.streams.records import Activation, Decision, codec
from processes import wait_for

OWN = """version: 1
rules:
  - name: mesh_lost
    pattern: 'the mesh of {what} was lost'
    error_type: communication
    transient: true
"""
BROKEN = """version: 1
rules:
  - name: mesh_lost
    pattern: 'the mesh (was lost'
    error_type: communication
  - {name: other, pattern: x, error_type: nonsense, colour: red}
"""
POLICY = """policy: {name}
modes:
  crash: {{kind: {kind}, max_restarts: 2}}
"""


@pytest.fixture(scope="module")
def watch(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Match with a directory of rules of its own, that is empty at the start."""
    with installation(tmp_path_factory.mktemp("watch"), stack) as made:
        (made.directory / "rules").mkdir()
        made.start("match", MIDWATCH_RULES__DIRECTORIES=str(made.directory / "rules"))
        made.start("detect")
        made.start("decide")
        made.start("executor")
        made.ready()
        yield made


def _current(watch: Installation) -> CurrentBundle:
    topic = RulesTopic(watch.settings)
    try:
        topic.read_to_end()
        assert topic.current is not None
        return topic.current
    finally:
        topic.close()


def _said(watch: Installation, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        midwatch(*arguments),
        cwd=watch.directory,
        env=watch.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def _log(watch: Installation, name: str) -> str:
    return (watch.directory / f"{name}.log").read_text()


def _activated(watch: Installation, topic: str) -> dict[int, str]:
    """The bundle last activated in each partition."""
    from kafka import KafkaConsumer, TopicPartition

    from midwatch.streams.services.reachable import kafka_options

    consumer = KafkaConsumer(**kafka_options(watch.settings), group_id=None, enable_auto_commit=False)
    try:
        partitions = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic))]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends, found = consumer.end_offsets(partitions), {tp.partition: "" for tp in partitions}
        while any(consumer.position(tp) < end for tp, end in ends.items()):
            for tp, messages in consumer.poll(timeout_ms=500).items():
                for message in messages:
                    record = codec.decode(message.value)
                    if message.key is None and isinstance(record, Activation):
                        found[tp.partition] = record.bundle
        return found
    finally:
        consumer.close()


@pytest.mark.capability("C-8")
def test_a_push_is_in_force_in_every_partition_of_both_topics(watch: Installation, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN.format(what="racks"))
    hash_ = pushed(watch, str(tmp_path / "own.yaml"))
    assert _current(watch).in_force.bundle == hash_
    names = watch.settings.topic_names
    for topic in (names.events, names.incidents):
        wait_for(lambda: set(_activated(watch, topic).values()) == {hash_}, f"active in {topic}", SOON)  # noqa: B023  # waited for within the round
    wait_for(lambda: f"bundle {hash_} is in force" in _log(watch, "match"), "match takes it", SOON)
    code, said = _said(watch, "rules", "list", "--in-force")
    assert code == 0
    assert "mesh_lost" in said
    assert hash_[:12] in said


@pytest.mark.capability("X-42")
def test_a_broken_push_changes_nothing_and_is_told_everywhere(watch: Installation, tmp_path: Path) -> None:
    before = _current(watch)
    file = tmp_path / "broken.yaml"
    file.write_text(BROKEN)
    done = push(watch, "--json", str(file))
    assert done.returncode == 3
    assert f"{file}:4:" in done.stderr
    assert f"{file}:6:" in done.stderr, "all mistakes at once"
    assert json.loads(done.stdout)["error"]["exit_code"] == 3
    assert _current(watch) == before
    stays = f"bundle {before.in_force.bundle} stays in force: a push by "
    for worker in ("match", "detect", "decide"):
        wait_for(lambda: stays in _log(watch, worker), f"{worker} tells of it", SOON)  # noqa: B023  # waited for within the round
    code, said = _said(watch, "doctor")
    assert code == 1
    assert f"was refused, bundle {before.in_force.bundle[:12]} stays" in said
    assert f"{file}:4:" in said
    pushed(watch, str(_file(tmp_path, OWN.format(what="cages"))))
    assert "was refused" not in _said(watch, "doctor")[1]


def _file(directory: Path, text: str) -> Path:
    file = directory / f"{secrets.token_hex(3)}.yaml"
    file.write_text(text)
    return file


@pytest.mark.capability("C-8", "X-42")
def test_an_edited_file_is_in_force_and_a_broken_edit_is_not(watch: Installation) -> None:
    file = watch.directory / "rules" / "own.yaml"
    before = _current(watch)
    file.write_text(OWN.format(what="halls"))
    wait_for(lambda: _current(watch) != before, "the edit is taken", SOON)
    edited = _current(watch)
    assert (edited.in_force.by, edited.in_force.files) == ("files", (str(file),))
    file.write_text(BROKEN)
    wait_for(lambda: "own.yaml:4:" in _said(watch, "rules", "list", "--in-force")[1], "it is told", SOON)
    assert _current(watch) == edited
    assert "an edit by" in _log(watch, "match")
    file.write_text(OWN.format(what="halls"))
    wait_for(lambda: "was refused" not in _said(watch, "doctor")[1], "put right", SOON)
    assert _current(watch) == edited


def test_a_worker_that_dies_while_its_files_are_broken_works_on_by_the_last_good_bundle(
    watch: Installation,
) -> None:
    good, killed = _current(watch), watch.processes["match"].pid
    file = watch.directory / "rules" / "own.yaml"
    file.write_text(BROKEN)
    watch.kill("match")
    wait_for(lambda: watch.processes["match"].pid != killed, "it is started again", SOON)
    watch.ready("match")
    assert _current(watch) == good
    wait_for(lambda: "own.yaml:4:" in _said(watch, "doctor")[1], "it is told", SOON)
    file.unlink()
    wait_for(lambda: _current(watch) != good, "without the file the rest is in force", SOON)
    assert _current(watch).in_force.files == ()


def test_a_policy_acts_from_its_activation_on_and_a_person_s_own_word_wins(
    watch: Installation, tmp_path: Path
) -> None:
    own = tmp_path / "mine.policy.yaml"
    own.write_text(POLICY.format(name="mine", kind="never"))
    done = push(watch, str(own))
    assert done.returncode == 0, done.stderr
    job = watch.run(tmp_path / "first", "--policy=mine", "--nodes=1", nodes=("n0",))
    job.crash()
    wait_for(lambda: bool(_decisions(job)), "the first end is judged", SOON)
    assert _decisions(job)[0].action == "stop"
    verdict = tmp_path / "verdict.policy.yaml"
    verdict.write_text(POLICY.format(name="verdict", kind="never"))
    own.write_text(POLICY.format(name="mine", kind="always"))
    done = push(watch, str(own), str(verdict))
    assert done.returncode == 0
    assert "policy 'verdict' replaces the shipped one" in done.stderr
    hash_ = _current(watch).in_force.bundle
    incidents = watch.settings.topic_names.incidents
    wait_for(lambda: set(_activated(watch, incidents).values()) == {hash_}, "it is active", SOON)
    job = watch.run(tmp_path / "second", "--policy=mine", "--nodes=1", nodes=("n0",))
    job.crash()
    wait_for(lambda: bool(_decisions(job)), "the second end is judged", SOON)
    assert _decisions(job)[0].action == "restart"
    wait_for(lambda: job.starts() == 2, "it is started again", SOON)


def _decisions(job: Job) -> list[Decision]:
    return [d for d in job.decisions() if d.incident]


def test_a_worker_that_starts_late_judges_by_what_is_in_force(watch: Installation, tmp_path: Path) -> None:
    hash_ = pushed(watch, str(_file(tmp_path, OWN.format(what="late"))))
    second_match(watch, "late")
    assert f"bundle {hash_} is in force" in _log(watch, "late")
    assert "the rule files of this worker are not in force" in _log(watch, "late")
    assert _current(watch).in_force.bundle == hash_
