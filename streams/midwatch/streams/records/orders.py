"""What is decided and ordered, how a job is started again, and what could not be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from midwatch.streams.records.words import Action


@dataclass(frozen=True, slots=True)
class Decision:
    """A value with its reason, kept even when it is to do nothing."""

    job: str
    attempt: int
    incident: str
    revision: int
    action: Action
    policy: str
    reason: str
    at_ms: int
    armed: bool
    restart_number: int = 0  # attempt n of `restart_limit`, if the action is a restart
    restart_limit: int | None = None
    near_misses: tuple[str, ...] = ()
    command: str = ""  # id of the command written, "" if none


@dataclass(frozen=True, slots=True)
class Command:
    """One typed order to the executor. `signature` is over the canonical bytes of all other fields."""

    id: str
    job: str
    attempt: int
    seq: int
    action: Literal["restart", "cancel"]
    incarnation: str
    incident: str
    revision: int
    reason: str
    not_before_ms: int
    expires_ms: int
    issuer: str
    spec: str
    bundle: str
    restart_number: int = 1
    restart_limit: int | None = None
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Spec:
    """How to start this job again. Signed; the command carries its hash; only the executor reads it."""

    job: str
    cluster: str
    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    user: str
    log_paths: tuple[str, ...]
    checkpoint_directory: str
    policy: str
    armed: bool
    nodes: int = 1
    limits: Mapping[str, float] = field(default_factory=dict)
    max_restarts: int | None = None
    rules: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """What could not be read, and why."""

    topic: str
    partition: int
    offset: int
    reason: str
    value: bytes
    key: bytes | None = None
