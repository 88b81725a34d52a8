"""Decisions, commands, specs and dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from midwatch.streams.records.bounds import Count, Duration, JobText, Millis, Name, Nodes, Whole
from midwatch.streams.records.words import Action

BY_PERSON = "person:"
"""How the issuer of a command begins that a person asked for; the person's name follows."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision with its reason. Decide records it even when the action is to do nothing."""

    job: JobText
    attempt: Count
    incident: str
    revision: Count
    action: Action
    policy: str
    reason: str
    at_ms: Millis
    armed: bool
    restart_number: Count = 0  # which of the `restart_limit` restarts, if the action is a restart
    restart_limit: Count | None = None
    near_misses: tuple[str, ...] = ()
    command: str = ""  # id of the command written, "" if none


@dataclass(frozen=True, slots=True)
class Command:
    """One typed command to the executor. `signature` covers the canonical bytes of all other fields."""

    id: str
    job: JobText
    attempt: Count
    seq: Count
    action: Literal["restart", "cancel"]
    incarnation: Name
    incident: str
    revision: Count
    reason: str
    not_before_ms: Millis
    expires_ms: Millis
    issuer: str
    spec: str
    bundle: str
    restart_number: Count = 1
    restart_limit: Count | None = None
    parameters: Mapping[str, Whole | str] = field(default_factory=dict)
    signature: str = ""

    @property
    def person(self) -> str:
        """Who asked for it; "" if decide wrote it."""
        return self.issuer.removeprefix(BY_PERSON) if self.issuer.startswith(BY_PERSON) else ""


@dataclass(frozen=True, slots=True)
class Spec:
    """How to start this job again. Signed. The command carries its hash, and only the executor reads it."""

    job: JobText
    cluster: str
    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]  # of an earlier midwatch; now it stands in `environment_file`
    user: str
    log_paths: tuple[str, ...]
    checkpoint_directory: str
    policy: str
    armed: bool
    nodes: Nodes = 1
    limits: Mapping[str, Duration] = field(default_factory=dict)
    max_restarts: Count | None = None
    rules: str = ""
    resume_arguments: tuple[str, ...] = ()  # a template; see `midwatch.agents.schedulers.resume`
    environment_file: str = ""  # an absolute path; the file's name is the hash of its content
    follow: bool = False  # let it wait for the new start of a job that it waits for
    replaces: str = ""  # the hash of a spec that held its variables: this one is the same start, with a file
    signature: str = ""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that a worker refused, and why."""

    topic: str
    partition: int
    offset: int
    reason: str
    value: bytes
    key: bytes | None = None
    kind: str = ""  # the kind of refusal: see midwatch.streams.worker.refusals
