"""What this version writes for others to read: records, signatures, files of the state directory, names."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import msgspec

from midwatch.agents.decide import worker as decide
from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.decide.fold import DecideFold
from midwatch.agents.detect import worker as detect
from midwatch.agents.detect.fold import DetectFold
from midwatch.agents.executor import consumer
from midwatch.agents.executor.arming import disarm_all, mark_job
from midwatch.agents.executor.claims import Claim, Claims
from midwatch.agents.executor.reconcile import Memory, memory
from midwatch.agents.launch.submission import keep
from midwatch.agents.match import worker as match
from midwatch.agents.messages import worker as messages
from midwatch.agents.messages.fold import MessagesFold
from midwatch.agents.rulesets.bundles import CompiledBundle
from midwatch.agents.rulesets.content import bundle, bundle_hash
from midwatch.agents.rulesets.reload.activation import activated
from midwatch.agents.schedulers.local import effect_file
from midwatch.agents.schedulers.slurm import text as slurm_text
from midwatch.agents.signing import PRIVATE_NAME, ensure_keys, load_signer, spec_hash
from midwatch.agents.watcher.cancellation_notes import note_cancellation
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.rules.loader import load_bundle
from midwatch.shippers.files.sent_positions import Remembered, SentPositions, ShipperDirectory
from midwatch.shippers.ship import checkpoint_directory
from midwatch.streams import records
from midwatch.streams.records import codec, identity
from midwatch.streams.records.effect_keys import command_id, effect_key
from midwatch.streams.records.identity import message_key
from midwatch.streams.settings.messages import CommandSettings, MessagesSettings
from midwatch.streams.settings.reader import OTHER_VARIABLES, leaves, variable_name
from midwatch.streams.settings.schema import KafkaSettings, RedisSettings, Settings
from midwatch.streams.topics import Topics
from midwatch.streams.worker.fold import PARTITION, Message, Send
from midwatch.streams.worker.tables import ids, keys, wire
from midwatch.streams.worker.tables.batch import NOW
from unit.upgrade.filled import JOB, filled

KEY = bytes(range(32))
INCARNATION = "local:4711:99"
EFFECT = "0123456789abcdef0123456789abcdef"


def kinds() -> dict[str, Callable[[], object]]:
    """By the name on the wire, how a record of that kind is made."""
    made: dict[str, Callable[[], object]] = {name: partial(filled, cls) for name, cls in codec._KINDS.items()}
    return made | {name: partial(_passed_on, cls) for name, cls in codec._FORWARDED.items()}


def _passed_on(cls: type[Any]) -> records.Forwarded:
    return records.Forwarded(filled(cls))


def chunk() -> codec.Encoded:
    """A message of the topic `logs`."""
    made, text = filled(records.Chunk), b"one line\n"
    section = replace(
        made.sections[0], size=len(text), lines=1, anchors=(records.Anchor(0, 0, 1),), context=0
    )
    return codec.encode_log(replace(made, sections=(section,), text=text))


def signed(directory: Path, record: records.Command | records.Spec) -> str:
    """The signature with the test's key."""
    if not (directory / PRIVATE_NAME).exists():
        directory.mkdir(parents=True, exist_ok=True)
        (directory / PRIVATE_NAME).touch(mode=0o600)
        (directory / PRIVATE_NAME).write_bytes(KEY)
    signer: Any = load_signer(directory)  # its types tell of one kind of record at a time
    return str(signer.sign(record).signature)


def rules() -> tuple[str, records.RuleBundle]:
    """Some of the shipped rules as a bundle, and the hash that names it."""
    shown: set[str] = set()
    chosen = []
    every = bundle(load_bundle("default").rules, {}, any_line=False, policies=(), policy_files={})
    for rule in every.rules:
        if set(rule) - shown:
            chosen.append(rule)
            shown |= set(rule)
    made = replace(every, rules=tuple(chosen), silence={"training": 60.0})
    return bundle_hash(made), made


def state_directory(directory: Path) -> dict[str, str]:
    """Writes the files that outlive a process; returns their content by path, binary ones in base64."""
    signed(directory, filled(records.Spec))
    ensure_keys(directory)
    mark_job(directory, JOB, armed=True, at=1.5)
    disarm_all(directory, at=2.5)
    record = effect_file.Record(
        EFFECT, 4711, 99, "boot", "ada", ("python", "train.py"), "/home/ada", 3.5, 1, True, "why", 4.5
    )
    effect_file.create(directory, record)
    note_cancellation(directory, INCARNATION, "ada")
    keep(directory / "scripts", b"#!/bin/sh\nexec true\n")
    joined(directory)
    shipper = ShipperDirectory(checkpoint_directory(directory, JOB, "n0"))
    shipper.save(checkpoint())
    shipper.close()
    files = [file for file in sorted(directory.rglob("*")) if file.is_file()]
    return {str(file.relative_to(directory)): _content(file) for file in files}


def _content(file: Path) -> str:
    """What a reader takes from it: who holds a lock is told to people, and read by nobody."""
    return "" if file.name == "lock" else _text(file.read_bytes())


def checkpoint() -> SentPositions:
    """Of the shipper in `state_directory`."""
    return SentPositions((filled(Remembered),), INCARNATION, "boot")


def claim() -> bytes:
    """An open order as Redis holds it, with what the executor remembers of its work."""
    known = replace(filled(Memory), tried_epoch="")  # a field of later versions, left out where it is empty
    return msgspec.json.encode(Claim(filled(records.Command), 6, known.words(), 2))


def open_claim(body: bytes) -> tuple[Claim, Memory]:
    """What an executor reads of it."""
    claims = Claims(_Redis(body), "midwatch", Path())  # type: ignore[arg-type]  # what is asked of it, it has
    (found,) = claims.open()
    return found, memory(found.memory)


def joined(directory: Path) -> bool:
    """Whether an executor that starts there finds that Redis has lost its claims; Redis has not."""
    return Claims(_Redis(), "midwatch", directory).join(5)  # type: ignore[arg-type]  # what is asked of it, it has


def _never_asked(_size: int) -> CompiledBundle:
    raise AssertionError("no record is matched here")


def names(directory: Path) -> dict[str, Any]:
    """What topics, groups, keys and variables are called."""
    settings = Settings(
        state_directory=directory,
        kafka=KafkaSettings(bootstrap=("127.0.0.1:1",)),
        redis=RedisSettings(url="redis://127.0.0.1:1/0"),
    )
    told = MessagesSettings(command=CommandSettings(argv=("true",)))
    apps = (match.build(settings, _never_asked), detect.build(settings), decide.build(settings))
    table = ("midwatch.detect", "midwatch.events", 3)
    asked = _Redis()
    claims = Claims(asked, "midwatch", directory / "claims")  # type: ignore[arg-type]  # what is asked of it, it has
    claims.join(5)
    claims.claim(filled(records.Command), 6)
    return {
        "topics": [[s.name, s.partitions, s.retention_ms, s.append_time] for s in Topics().specifications()],
        "groups": [*(app.group for app in apps), _executors_group(settings)],
        "messages": messages.build(replace(settings, messages=told)).group,
        "tables": [
            key.decode()
            for key in (
                keys.offset_key(*table),
                keys.outbox_key(*table),
                keys.state_key(*table, JOB.encode()),
            )
        ],
        "fields": _fields(),
        "claims": sorted(asked.names),
        "rules": [records.CURRENT.decode(), records.REFUSED.decode()],
        "message": message_key(JOB, "n0").decode(),
        "samples": [records.LINES_READ],
        "header": ids.HEADER,
        "id": ids.format_id("midwatch.events", 3, ids.entry_id(41, 0)).decode(),
        "outbox": wire.pack(Send("midwatch.incidents", b"k", b"v", (("id", b"x"),), 3)).hex(),
        "incarnations": [
            identity.slurm_incarnation("12_3", 1),
            identity.local_incarnation(4711, 99),
            identity.ray_incarnation("raysubmit_1", "session"),
        ],
        "comment": slurm_text.KEY_PREFIX,
        "command": command_id(JOB, 1, 2),
        "effects": [effect_key(JOB, 1, "start"), effect_key(JOB, 1, "end")],
        # A field that is younger than the first signatures is left out of the hash while it is empty.
        "spec": spec_hash(
            replace(filled(records.Spec), resume_arguments=(), environment_file="", follow=False, replaces="")
        ),
        "variables": sorted({variable_name(path) for path, _ in leaves()} | OTHER_VARIABLES),
    }


def _fields() -> dict[str, list[str]]:
    """What a job's and a partition's state is kept under, after one record for each agent and a bundle."""
    detect_it = DetectFold(WatchLimits(), "midwatch.incidents", lambda _: 0)
    decide_it = DecideFold(Rulebook(policies={}, sign=lambda command: command), "d", "c")
    job, named = JOB.encode(), records.Forwarded(filled(records.SpecEvent))
    given = (
        ("detect", detect_it, replace(filled(records.Heartbeat), final=False)),
        ("decide", decide_it, named),
        ("messages", MessagesFold(()), records.Forwarded(filled(records.Finding))),
    )
    found = {"bundle": activated({}, filled(records.Activation), 1_000_000).keys() | {NOW}}
    for name, fold, record in given:
        message = Message("a topic", 0, 7, 1_000_000, 1_000_000, job, codec.encode(record))
        done = fold.apply({PARTITION: {}, job: {}}, message)
        found[name] = {field for changed in done.changed.values() for field in changed}
    return {name: sorted(field.decode() for field in fields) for name, fields in found.items()}


def _executors_group(settings: Settings) -> str:
    """The group in which the executor keeps its place in `commands`."""
    with patch.object(consumer, "plain_consumer") as asked:
        asked.return_value.partitions_for_topic.return_value = ()
        consumer.CommandConsumer(settings, Mock())
    return str(asked.call_args.kwargs["group_id"])


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(content).decode()}"


class _Redis:
    """Answers as an empty Redis whose epoch is known; notes which keys it was asked for."""

    def __init__(self, *claims: bytes) -> None:
        self._claims = list(claims)
        self.names: set[str] = set()

    def get(self, name: str) -> bytes | None:
        self.names.add(name)
        return b"an epoch" if name.endswith(":epoch") else None

    def hvals(self, name: str) -> list[bytes]:
        self.names.add(name)
        return self._claims

    def eval(self, _script: str, count: int, *given: Any) -> list[bytes]:
        self.names |= set(given[:count])
        return [b"claimed", b"1"]
